package gateway

import (
	"bufio"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"testing"

	"github.com/sluice-platform/sluice/schemas/events/catalog"
	"github.com/sluice-platform/sluice/services/gateway/internal/proxy"
)

// trailing is an upstream that keeps the trailers of the last request, as they
// are announced and as they came, and what it was announced in.
type trailing struct {
	announced, came http.Header
	body            string
}

func (u *trailing) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	u.announced = r.Trailer.Clone()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		body = []byte(err.Error())
	}
	u.body, u.came = string(body), r.Trailer.Clone()
}

// Trailers pass with their values, over both versions of HTTP, but for what
// clients must not say: neither announced nor sent, in no spelling.
func TestTrailersOfRequestsPass(t *testing.T) {
	t.Parallel()
	const names = "X-Sum, X-Never, X-Tenant-Id, X_User_Id, X-Api-Key, Sluice-Cost, X-Forwarded-For, Authorization, Cookie, Host, Connection, Content-Type, no name"
	const request = "POST /demo/x HTTP/1.1\r\nHost: gate\r\nTransfer-Encoding: chunked\r\nTrailer: " + names + "\r\n\r\n" +
		"3\r\nabc\r\n0\r\nX-Sum: 42\r\nX-Sum: 43\r\nX-Unannounced: 1\r\nX-Tenant-Id: globex\r\nX_User_Id: root\r\nX-Api-Key: slk_x\r\nSluice-Cost: 0\r\n" +
		"X-Forwarded-For: 1.2.3.4\r\nAuthorization: Bearer slk_x\r\nCookie: a=b\r\nHost: other\r\nConnection: close\r\nContent-Type: a/b\r\n\r\n"
	for _, http2 := range []bool{false, true} {
		up := new(trailing)
		server := httptest.NewUnstartedServer(up)
		server.Config.Protocols = new(http.Protocols)
		server.Config.Protocols.SetHTTP1(!http2)
		server.Config.Protocols.SetUnencryptedHTTP2(http2)
		server.Start()
		t.Cleanup(server.Close)
		s := newStand(t, standOptions{trusted: []string{loopback}, catalog: []catalog.Service{
			{Name: "demo", Prefix: "/demo/", Upstreams: []catalog.Upstream{{URL: server.URL}}},
		}})
		transport := proxy.NewTransport(DefaultConfig().Upstream)
		transport.Protocols = server.Config.Protocols
		t.Cleanup(transport.CloseIdleConnections)
		s.gate.prepare(transport)

		res, err := http.ReadResponse(bufio.NewReader(dial(t, s, request)), nil)
		if err != nil {
			t.Fatal(err)
		}
		announced, came := http.Header{"X-Sum": nil, "X-Never": nil}, http.Header{"X-Sum": {"42", "43"}, "X-Never": nil}
		if res.StatusCode != http.StatusOK || up.body != "abc" || !reflect.DeepEqual(up.announced, announced) || !reflect.DeepEqual(up.came, came) {
			t.Errorf("HTTP/2 %t: %d, body %q, announced %v, came %v", http2, res.StatusCode, up.body, up.announced, up.came)
		}
	}
}

// Nothing is announced that does not follow, and a body whose length is known
// stays one.
func TestTrailersThatMayNotPassAreNotAnnounced(t *testing.T) {
	t.Parallel()
	for fields, want := range map[string]int64{
		"Content-Length: 3\r\nTrailer: X-Sum\r\n\r\nabc":                                                    3,
		"Transfer-Encoding: chunked\r\nTrailer: X-Tenant-Id\r\n\r\n3\r\nabc\r\n0\r\nX-Tenant-Id: a\r\n\r\n": -1,
		"Trailer: X-Sum\r\n\r\n": 0,
	} {
		s := newStand(t, standOptions{handler: readsAll})
		res, err := http.ReadResponse(bufio.NewReader(dial(t, s, "POST /demo/x HTTP/1.1\r\nHost: gate\r\n"+fields)), nil)
		if err != nil {
			t.Fatal(err)
		}
		if up := s.last(); res.StatusCode != http.StatusOK || up.ContentLength != want || len(up.Trailer) != 0 || up.Header["Trailer"] != nil {
			t.Errorf("%q: %d, length %d, trailers %v, %v", fields, res.StatusCode, up.ContentLength, up.Trailer, up.Header)
		}
	}
}
