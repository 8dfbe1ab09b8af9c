package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

const (
	envURL     = "SLUICE_URL"
	envToken   = "SLUICE_TOKEN"
	defaultURL = "http://127.0.0.1:8088"

	callTimeout = 30 * time.Second
	maxAnswer   = 64 << 20 // bytes; a page of 500 large documents
)

// connection is where the control plane (or another part) is, and who calls it.
type connection struct {
	url, token string
	// flag, env and fallback are where url comes from, and what is called; the
	// zero value is the control plane's.
	flag, env, fallback, what string
}

// addFlags adds the flags to a command and all below it. Their defaults come
// from the environment when they are used, so that --help shows no token.
func (c *connection) addFlags(cmd *cobra.Command) {
	cmd.PersistentFlags().StringVar(&c.url, "url", "", "control plane (default $"+envURL+", else "+defaultURL+")")
	cmd.PersistentFlags().StringVar(&c.token, "token", "", "bearer token (default $"+envToken+")")
}

// base returns the URL to call, without a slash at its end.
func (c *connection) base() (string, error) {
	raw := firstOf(c.url, os.Getenv(firstOf(c.env, envURL)), c.fallback, defaultURL)
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return "", fmt.Errorf("%s must be http://host:port or https://host, not %q", firstOf(c.flag, "--url"), raw)
	}
	return strings.TrimRight(raw, "/"), nil
}

func firstOf(values ...string) string {
	for _, v := range values {
		if v != "" {
			return v
		}
	}
	return ""
}

// call is one request; an answer of 2xx is decoded into into, if that is not nil.
type call struct {
	method, path string
	header       map[string]string
	body         any
	into         any
	// flags name, in errors, fields of the body as the user gave them.
	flags map[string]string
}

// httpClient follows no redirect: it would carry the token elsewhere.
var httpClient = &http.Client{
	Timeout:       callTimeout,
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

func (c *connection) do(ctx context.Context, r call) error {
	data, err := c.fetch(ctx, r)
	if err != nil || r.into == nil {
		return err
	}
	if err := json.Unmarshal(data, r.into); err != nil {
		return fmt.Errorf("%s %s answered no JSON; is it a Sluice %s? %w", r.method, r.path, firstOf(c.what, "control plane"), err)
	}
	return nil
}

// fetch does a request and returns the body of an answer of 2xx as it is.
func (c *connection) fetch(ctx context.Context, r call) ([]byte, error) {
	req, err := c.request(ctx, r)
	if err != nil {
		return nil, err
	}
	res, err := httpClient.Do(req)
	if err != nil {
		return nil, fmt.Errorf("call %s (%s or $%s says where it is): %w", firstOf(c.what, "control plane"), firstOf(c.flag, "--url"), firstOf(c.env, envURL), err)
	}
	defer res.Body.Close()
	data, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	if err != nil {
		return nil, fmt.Errorf("read answer to %s %s: %w", r.method, r.path, err)
	}
	if res.StatusCode < 200 || res.StatusCode > 299 {
		return nil, newAnswerError(res, data, r.flags)
	}
	return data, nil
}

func (c *connection) request(ctx context.Context, r call) (*http.Request, error) {
	base, err := c.base()
	if err != nil {
		return nil, err
	}
	token := strings.TrimSpace(firstOf(c.token, os.Getenv(envToken)))
	if token == "" {
		return nil, fmt.Errorf("no token: set $%s or give --token", envToken)
	}
	var body io.Reader
	if r.body != nil {
		data, err := json.Marshal(r.body)
		if err != nil {
			return nil, fmt.Errorf("encode body of %s %s: %w", r.method, r.path, err)
		}
		body = bytes.NewReader(data)
	}
	req, err := http.NewRequestWithContext(ctx, r.method, base+r.path, body)
	if err != nil {
		return nil, fmt.Errorf("make request: %w", err)
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	req.Header.Set("Authorization", "Bearer "+token)
	for name, value := range r.header {
		req.Header.Set(name, value)
	}
	return req, nil
}

// answerError is an answer that is no success, as the server explained it.
type answerError struct {
	status int
	text   string
	// problem is the stable identifier of what is wrong, detail its description.
	problem, detail string
}

func (e *answerError) Error() string { return e.text }

// refused tells an error that says nothing was done: an answer of 4xx.
func refused(err error) bool {
	var answer *answerError
	return errors.As(err, &answer) && answer.status >= 400 && answer.status < 500
}

func newAnswerError(res *http.Response, data []byte, flags map[string]string) error {
	var problem struct {
		Type, Detail string
		Errors       []struct{ Field, Message string }
	}
	text := fmt.Sprintf("%s %s: %s", res.Request.Method, res.Request.URL.EscapedPath(), res.Status)
	if json.Unmarshal(data, &problem) != nil {
		return &answerError{status: res.StatusCode, text: text}
	}
	if len(problem.Errors) == 0 && problem.Detail != "" {
		text += ": " + problem.Detail
	}
	for _, e := range problem.Errors {
		text += "\n  " + strings.TrimPrefix(firstOf(flags[e.Field], e.Field)+": ", ": ") + e.Message
	}
	return &answerError{res.StatusCode, text, problem.Type, problem.Detail}
}

// page is one page of any list.
type page[T any] struct {
	Items []T    `json:"items"`
	Next  string `json:"next"`
}

const pageSize = 500

// all reads a list until it ends, or until most items are there (0: no bound).
func all[T any](ctx context.Context, c *connection, path string, query url.Values, most int) ([]T, error) {
	var items []T
	query.Set("limit", fmt.Sprint(pageSize))
	for {
		if most > 0 {
			query.Set("limit", fmt.Sprint(min(pageSize, most-len(items))))
		}
		var p page[T]
		if err := c.do(ctx, call{method: http.MethodGet, path: path + "?" + query.Encode(), into: &p}); err != nil {
			return nil, err
		}
		items = append(items, p.Items...)
		if p.Next == "" || most > 0 && len(items) >= most {
			return items, nil
		}
		query.Set("cursor", p.Next)
	}
}
