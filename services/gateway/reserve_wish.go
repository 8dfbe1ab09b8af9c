package gateway

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/sluice-platform/sluice/libs/limit"
	"github.com/sluice-platform/sluice/libs/reserve"
	"github.com/sluice-platform/sluice/libs/route"
	"github.com/sluice-platform/sluice/libs/strictjson"
	"github.com/sluice-platform/sluice/services/gateway/internal/event"
	"github.com/sluice-platform/sluice/services/gateway/internal/reject"
	"github.com/sluice-platform/sluice/services/gateway/internal/routing"
)

// Bounds of what is asked for.
const (
	maxWish    = 16 << 10 // bytes of a body
	minTTL     = time.Second
	maxTTL     = 24 * time.Hour
	defaultTTL = time.Minute
	// readWishWithin is how long a client may take to send it.
	readWishWithin = 10 * time.Second
)

// wish is what POST /.sluice/v1/reservations takes: the request that the work is
// counted as, and its cost.
type wish struct {
	// ID is the client's, by which it ends the reservation, and may ask once more
	// where no answer came; absent is a new one.
	ID string `json:"id"`
	// Path is as a client would send it, its service's prefix included. Service, if
	// given, must be the one whose path it is.
	Service string `json:"service"`
	Path    string `json:"path"`
	Method  string `json:"method"` // absent: POST
	Cost    *int64 `json:"cost"`   // units, at least 1
	TTL     string `json:"ttl"`    // absent: 60s

	ttl time.Duration
}

// readWish reads and checks what is asked for, and finds its service; it answers
// all mistakes at once.
func (g *gate) readWish(x *exchange) (*wish, bool) {
	w := new(wish)
	if !g.readBody(x, w) {
		return nil, false
	}
	found := w.check(g, x)
	if len(found) > 0 {
		return nil, g.refuseWish(x, found)
	}
	if w.ID == "" {
		w.ID = event.NewID(x.start)
	}
	return w, true
}

// readBody decodes a strict JSON body into a struct.
func (g *gate) readBody(x *exchange, into any) bool {
	_ = http.NewResponseController(x.w).SetReadDeadline(time.Now().Add(readWishWithin)) // of a writer without one it is the server's
	body, err := io.ReadAll(http.MaxBytesReader(x.w, x.r.Body, maxWish))
	if err != nil {
		return g.refuseWish(x, []string{fmt.Sprintf("the body could not be read, or has more than %d bytes", maxWish)})
	}
	if mistakes := strictjson.Decode(body, into); len(mistakes) > 0 {
		found := make([]string, len(mistakes))
		for i, m := range mistakes {
			found[i] = m.String()
		}
		return g.refuseWish(x, found)
	}
	return true
}

func (g *gate) refuseWish(x *exchange, found []string) bool {
	return g.refuse(x, reject.Reservation, &reject.Problem{Status: http.StatusBadRequest, Title: "Bad reservation", Detail: strings.Join(found, "; ")})
}

func (w *wish) check(g *gate, x *exchange) (found []string) {
	add := func(format string, args ...any) { found = append(found, fmt.Sprintf(format, args...)) }
	if w.ID != "" && !reserve.ValidID(w.ID) {
		add("id: must be 1 to %d letters, digits and . _ ~ -, and more than . or ..", reserve.MaxID)
	}
	if w.Method == "" {
		w.Method = http.MethodPost
	}
	switch _, err := http.NewRequest(w.Method, "/", nil); { //nolint:noctx // only asks whether it is a method
	case err != nil, len(w.Method) > event.MaxMethod:
		add("method: must be a method of HTTP of at most %d characters, such as POST", event.MaxMethod)
	case routing.WrongCase(w.Method):
		add("method: must be written %s, since methods are case-sensitive", strings.ToUpper(w.Method))
	case w.Method == http.MethodConnect:
		add("method: must not be CONNECT, which no service has")
	}
	w.checkTarget(g, x, add)
	switch most := maxReserved(x.service); {
	case w.Cost == nil:
		add("cost: must be there: how many units to reserve")
	case *w.Cost < 1 || *w.Cost > most:
		add("cost: must be a whole number of units from 1 to %d%s", most, whoseMost(x.service))
	}
	var err error
	if w.ttl = defaultTTL; w.TTL != "" {
		if w.ttl, err = time.ParseDuration(w.TTL); err != nil || w.ttl < minTTL || w.ttl > maxTTL {
			add("ttl: must be a duration from 1s to 24h, such as 60s")
		}
	}
	return found
}

// checkTarget finds the service that the path belongs to.
func (w *wish) checkTarget(g *gate, x *exchange, add func(string, ...any)) {
	path, err := route.CleanPath(w.Path)
	switch {
	case w.Path == "":
		add("path: must be there: the path that the work is counted at, such as /llm/v1/chat")
		return
	case err != nil || strings.ContainsAny(w.Path, "?#"):
		add("path: must be a path that begins with a slash, without a query")
		return
	case routing.IsOwn(path):
		add("path: must not be one of the gate's own")
		return
	}
	x.path, x.method = path, w.Method
	if x.service = g.routes.Find(path); x.service == nil {
		add("path: must be below a service's prefix; none covers %s", event.Clip(path, event.MaxPath))
	} else if w.Service != "" && w.Service != x.service.Name {
		add("service: must be %s, whose path it is, or be left out", x.service.Name)
	}
}

// maxReserved is the most that a reservation of a service may have or come to, in
// units; nil is of no service yet.
func maxReserved(s *routing.Service) int64 {
	most := int64(limit.MaxInteger) - int64(reserve.Committed)
	if s != nil {
		most = min(most, s.MaxCost)
	}
	return most
}

func whoseMost(s *routing.Service) string {
	if s == nil {
		return ""
	}
	return ", the service's maxCost"
}

// fingerprint tells one wish from another with the same id: also another user's or
// application's of the tenant, whose counters are others. The key may be a new one,
// unless a rule counts by it (key).
func (w *wish) fingerprint(x *exchange, key string) string {
	text := w.Method + " " + x.path + "\n" + strconv.FormatInt(*w.Cost, 10) + "\n" + w.ttl.String() +
		"\n" + x.caller.User + "\n" + x.caller.Application // none of them holds a line's end
	if key != "" {
		text += "\n" + key
	}
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:8])
}
