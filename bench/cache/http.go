package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"
)

// host is the name that clients know all proxies by.
const host = "shop.example"

const path = "/shop/window"

// httpReader reads through the node's proxy. Connections for all readers of a cold key are made beforehand: they read
// at one instant, as libraries do.
func httpReader(n node) (reader, error) {
	dial := net.Dialer{Timeout: readPatience}
	made := make(chan net.Conn, n.Readers)
	if n.Scenario == cold {
		for range n.Readers {
			conn, err := dial.Dial("tcp", n.Proxy)
			if err != nil {
				return nil, err
			}
			made <- conn
		}
	}
	client := &http.Client{Transport: &http.Transport{
		MaxIdleConnsPerHost: 1 << 16,
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			select {
			case conn := <-made:
				return conn, nil
			default:
				return dial.DialContext(ctx, network, addr)
			}
		},
	}}
	return func(ctx context.Context) (string, error) { return get(ctx, client, "http://"+n.Proxy+path) }, nil
}

func get(ctx context.Context, client *http.Client, url string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	req.Host = host
	res, err := client.Do(req)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %.100s", res.Status, body)
	}
	return string(body), err
}

// origin is the service behind the proxies.
type origin struct {
	addr   string
	server *http.Server
}

// startOrigin serves loads that take takes, whose answers are fresh for ttl.
func startOrigin(src *source, takes, ttl time.Duration) (*origin, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	freshness := "max-age=" + strconv.Itoa(int(ttl.Seconds()))
	o := &origin{addr: listener.Addr().String(), server: &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		load := src.begin()
		defer src.end()
		if work(r.Context(), takes) != nil {
			return // nobody is there any more
		}
		w.Header().Set("Cache-Control", freshness)
		_, _ = io.WriteString(w, value(load, time.Now()))
	})}}
	go func() { _ = o.server.Serve(listener) }() // to Close
	return o, nil
}

func (o *origin) close() { _ = o.server.Close() }
