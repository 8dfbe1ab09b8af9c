package rest

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
	EnvURL     = "SLUICE_URL"
	EnvToken   = "SLUICE_TOKEN"
	defaultURL = "http://127.0.0.1:8088"

	callTimeout = 30 * time.Second
	maxAnswer   = 64 << 20 // bytes; a page of 500 large documents
)

// Connection is where the control plane (or another part) is, and who calls it.
type Connection struct {
	URL, Token string
	// Flag, Env and Fallback are where URL comes from, and what is called; the
	// zero value is the control plane's.
	Flag, Env, Fallback, What string
}

// AddFlags adds the flags to a command and all below it. Their defaults come
// from the environment when they are used, so that --help shows no token.
func (c *Connection) AddFlags(cmd *cobra.Command) {
	cmd.PersistentFlags().StringVar(&c.URL, "url", "", "control plane (default $"+EnvURL+", else "+defaultURL+")")
	cmd.PersistentFlags().StringVar(&c.Token, "token", "", "bearer token (default $"+EnvToken+")")
}

// Base returns the URL to call, without a slash at its end.
func (c *Connection) Base() (string, error) {
	raw := FirstOf(c.URL, os.Getenv(FirstOf(c.Env, EnvURL)), c.Fallback, defaultURL)
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return "", fmt.Errorf("%s must be http://host:port or https://host, not %q", FirstOf(c.Flag, "--url"), raw)
	}
	return strings.TrimRight(raw, "/"), nil
}

func FirstOf(values ...string) string {
	for _, v := range values {
		if v != "" {
			return v
		}
	}
	return ""
}

// Call is one request; an answer of 2xx is decoded into Into, if that is not nil.
type Call struct {
	Method, Path string
	Header       map[string]string
	Body         any
	Into         any
	// Flags name, in errors, fields of the body as the user gave them.
	Flags map[string]string
}

// HTTPClient follows no redirect: it would carry the token elsewhere.
var HTTPClient = &http.Client{
	Timeout:       callTimeout,
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

func (c *Connection) Do(ctx context.Context, r Call) error {
	data, err := c.Fetch(ctx, r)
	if err != nil || r.Into == nil {
		return err
	}
	if err := json.Unmarshal(data, r.Into); err != nil {
		return fmt.Errorf("%s %s answered no JSON; is it a Sluice %s? %w", r.Method, r.Path, FirstOf(c.What, "control plane"), err)
	}
	return nil
}

// Fetch does a request and returns the body of an answer of 2xx as it is.
func (c *Connection) Fetch(ctx context.Context, r Call) ([]byte, error) {
	req, err := c.Request(ctx, r)
	if err != nil {
		return nil, err
	}
	res, err := HTTPClient.Do(req)
	if err != nil {
		return nil, fmt.Errorf("call %s (%s or $%s says where it is): %w", FirstOf(c.What, "control plane"), FirstOf(c.Flag, "--url"), FirstOf(c.Env, EnvURL), err)
	}
	defer res.Body.Close()
	data, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	if err != nil {
		return nil, fmt.Errorf("read answer to %s %s: %w", r.Method, r.Path, err)
	}
	if res.StatusCode < 200 || res.StatusCode > 299 {
		return nil, newAnswerError(res, data, r.Flags)
	}
	return data, nil
}

func (c *Connection) Request(ctx context.Context, r Call) (*http.Request, error) {
	base, err := c.Base()
	if err != nil {
		return nil, err
	}
	token := strings.TrimSpace(FirstOf(c.Token, os.Getenv(EnvToken)))
	if token == "" {
		return nil, fmt.Errorf("no token: set $%s or give --token", EnvToken)
	}
	var body io.Reader
	if r.Body != nil {
		data, err := json.Marshal(r.Body)
		if err != nil {
			return nil, fmt.Errorf("encode body of %s %s: %w", r.Method, r.Path, err)
		}
		body = bytes.NewReader(data)
	}
	req, err := http.NewRequestWithContext(ctx, r.Method, base+r.Path, body)
	if err != nil {
		return nil, fmt.Errorf("make request: %w", err)
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	req.Header.Set("Authorization", "Bearer "+token)
	for name, value := range r.Header {
		req.Header.Set(name, value)
	}
	return req, nil
}

// AnswerError is an answer that is no success, as the server explained it.
type AnswerError struct {
	Status int
	Text   string
	// Problem is the stable identifier of what is wrong, Detail its description.
	Problem, Detail string
}

func (e *AnswerError) Error() string { return e.Text }

// Refused tells an error that says nothing was done: an answer of 4xx.
func Refused(err error) bool {
	var answer *AnswerError
	return errors.As(err, &answer) && answer.Status >= 400 && answer.Status < 500
}

func newAnswerError(res *http.Response, data []byte, flags map[string]string) error {
	var problem struct {
		Type, Detail string
		Errors       []struct{ Field, Message string }
	}
	text := fmt.Sprintf("%s %s: %s", res.Request.Method, res.Request.URL.EscapedPath(), res.Status)
	if json.Unmarshal(data, &problem) != nil {
		return &AnswerError{Status: res.StatusCode, Text: text}
	}
	if len(problem.Errors) == 0 && problem.Detail != "" {
		text += ": " + problem.Detail
	}
	for _, e := range problem.Errors {
		text += "\n  " + strings.TrimPrefix(FirstOf(flags[e.Field], e.Field)+": ", ": ") + e.Message
	}
	return &AnswerError{res.StatusCode, text, problem.Type, problem.Detail}
}

// Page is one page of any list.
type Page[T any] struct {
	Items []T    `json:"items"`
	Next  string `json:"next"`
}

// PageSize is how many items All reads at once.
const PageSize = 500

// All reads a list until it ends, or until most items are there (0: no bound).
func All[T any](ctx context.Context, c *Connection, path string, query url.Values, most int) ([]T, error) {
	var items []T
	query.Set("limit", fmt.Sprint(PageSize))
	for {
		if most > 0 {
			query.Set("limit", fmt.Sprint(min(PageSize, most-len(items))))
		}
		var p Page[T]
		if err := c.Do(ctx, Call{Method: http.MethodGet, Path: path + "?" + query.Encode(), Into: &p}); err != nil {
			return nil, err
		}
		items = append(items, p.Items...)
		if p.Next == "" || most > 0 && len(items) >= most {
			return items, nil
		}
		query.Set("cursor", p.Next)
	}
}
