package gateway

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
	"time"
)

// serveOn runs the gateway's own server, with HTTP/2 without TLS, until the
// test ends.
func (s *stand) serveOn(t *testing.T) (address string) {
	t.Helper()
	cfg := DefaultConfig()
	cfg.H2C = true
	web := newServer(cfg, s.gate, s.gate.log)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- web.serve(l)(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return l.Addr().String()
}

// sent is what came back of a request that was written by hand.
type sent struct {
	status int
	body   string
}

// rawPatience is how long an answer to bytes written by hand is waited for.
const rawPatience = 20 * time.Second

func dialRaw(address string) (net.Conn, error) {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return nil, err
	}
	return conn, conn.SetDeadline(time.Now().Add(rawPatience))
}

// rawHTTP1 sends a GET of the target as it is, by HTTP/1.1.
func rawHTTP1(address, target, host string) (sent, error) {
	conn, err := dialRaw(address)
	if err != nil {
		return sent{}, err
	}
	defer conn.Close()
	if _, err := fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", target, host); err != nil {
		return sent{}, err
	}
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return sent{}, err
	}
	body, err := io.ReadAll(res.Body)
	return sent{res.StatusCode, string(body)}, err
}

// Frames of HTTP/2 (RFC 9113, section 6).
const (
	frameData, frameHeaders, frameReset, frameSettings, frameAway = 0, 1, 3, 4, 7
	endStream, endHeaders                                         = 0x1, 0x4
)

func frame(kind, flags byte, stream uint32, payload []byte) []byte {
	b := binary.BigEndian.AppendUint32(nil, uint32(len(payload))<<8|uint32(kind))
	b = append(b, flags)
	return append(binary.BigEndian.AppendUint32(b, stream), payload...)
}

// literal is a header field that is never indexed, without Huffman coding
// (RFC 7541, section 6.2.3); both parts are shorter than 127 bytes.
func literal(name, value string) []byte {
	b := append([]byte{0x10, byte(len(name))}, name...)
	return append(append(b, byte(len(value))), value...)
}

// rawHTTP2 sends a GET of the target as it is, by HTTP/2 with prior knowledge.
// The status is 0 where the server resets the stream instead of answering.
func rawHTTP2(address, target, host string) (sent, error) {
	conn, err := dialRaw(address)
	if err != nil {
		return sent{}, err
	}
	defer conn.Close()
	var fields []byte
	for _, f := range [][2]string{{":method", "GET"}, {":scheme", "http"}, {":authority", host}, {":path", target}} {
		fields = append(fields, literal(f[0], f[1])...)
	}
	out := append([]byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), frame(frameSettings, 0, 0, nil)...)
	if _, err := conn.Write(append(out, frame(frameHeaders, endStream|endHeaders, 1, fields)...)); err != nil {
		return sent{}, err
	}
	return readHTTP2(bufio.NewReader(conn))
}

func readHTTP2(r *bufio.Reader) (got sent, err error) {
	for {
		var head [9]byte
		if _, err := io.ReadFull(r, head[:]); err != nil {
			return got, err
		}
		payload := make([]byte, binary.BigEndian.Uint32(head[:4])>>8)
		if _, err := io.ReadFull(r, payload); err != nil {
			return got, err
		}
		switch kind := head[3]; kind {
		case frameHeaders:
			// The status goes first: entry 8 of the static table is 200, 12 is 400,
			// 13 is 404 (RFC 7541, appendix A).
			got.status = map[byte]int{0x88: http.StatusOK, 0x8c: http.StatusBadRequest, 0x8d: http.StatusNotFound}[payload[0]]
		case frameData:
			got.body += string(payload)
		case frameReset, frameAway:
			return sent{}, nil
		default:
			continue
		}
		if head[4]&endStream != 0 {
			return got, nil
		}
	}
}
