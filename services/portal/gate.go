package portal

import (
	"errors"
	"net/http"
	"strings"

	"github.com/sluice-platform/sluice/libs/ticket"
)

const cookieName = "sluice_portal"

// visit is one request of a customer who is known.
type visit struct {
	w        http.ResponseWriter
	r        *http.Request
	customer string
}

func (s *Service) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /open", s.open)
	mux.HandleFunc("POST /leave", s.leave)
	mux.HandleFunc("GET /style.css", style)
	for pattern, show := range map[string]func(*visit){
		"GET /{$}":               s.overview,
		"GET /topups":            s.topups,
		"GET /invoices":          s.invoices,
		"GET /invoices/{id}":     s.invoice,
		"GET /invoices/{id}/pdf": s.invoicePDF,
		"/":                      s.nothing,
	} {
		mux.HandleFunc(pattern, s.guarded(show))
	}
	return headers(mux)
}

// headers keep what is shown to whom it is shown: nothing is stored on the way,
// framed, or told to another site.
func headers(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Cache-Control", "no-store")
		h.Set("Content-Security-Policy", "default-src 'none'; style-src 'self' 'unsafe-inline'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("X-Frame-Options", "DENY")
		next.ServeHTTP(w, r)
	})
}

// guarded lets only a good ticket's request through, as its customer.
func (s *Service) guarded(show func(*visit)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		text := ""
		if c, err := r.Cookie(cookieName); err == nil {
			text = c.Value
		}
		t, ok := s.admit(w, text)
		if ok {
			show(&visit{w, r, t.Subject})
		}
	}
}

// admit checks a ticket, or answers 403.
func (s *Service) admit(w http.ResponseWriter, text string) (ticket.Ticket, bool) {
	if text == "" {
		s.refuse(w, whyNone, "Open the link you were sent: it shows your account.")
		return ticket.Ticket{}, false
	}
	t, err := s.deps.Keys.Verify(text, ticket.Check{Purpose: ticket.Portal, Now: s.deps.Now(), Leeway: s.cfg.Leeway, Life: ticket.PortalLife})
	switch {
	case err == nil:
		return t, true
	case errors.Is(err, ticket.ErrExpired):
		s.refuse(w, whyExpired, "Your link has expired. Ask for a new one where you got it.")
	case errors.Is(err, ticket.ErrTooLong):
		s.refuse(w, whyTooLong, "This link is not valid: it would hold for too long. Ask for a new one where you got it.")
	default:
		s.refuse(w, whyForged, "This link is not valid. Copy it whole, or ask for a new one where you got it.")
	}
	return ticket.Ticket{}, false
}

// refuse does not say more of a ticket than its owner can see.
func (s *Service) refuse(w http.ResponseWriter, why, message string) {
	s.metrics.refused.WithLabelValues(why).Inc()
	s.render(w, http.StatusForbidden, "message.html", page{Title: "No access", Message: message, Stranger: true})
}

// open takes the ticket out of the address, where it would be seen and kept,
// into a cookie that no script can read.
func (s *Service) open(w http.ResponseWriter, r *http.Request) {
	text := r.URL.Query().Get("ticket")
	t, ok := s.admit(w, text)
	if !ok {
		return
	}
	http.SetCookie(w, &http.Cookie{
		Name: cookieName, Value: text, Path: "/", Expires: t.Expiry,
		HttpOnly: true, SameSite: http.SameSiteLaxMode, Secure: strings.HasPrefix(s.cfg.URL, "https:"),
	})
	http.Redirect(w, r, "/", http.StatusSeeOther)
}

// leave forgets the ticket in this browser. It holds elsewhere until it expires.
func (s *Service) leave(w http.ResponseWriter, _ *http.Request) {
	http.SetCookie(w, &http.Cookie{Name: cookieName, Path: "/", MaxAge: -1, HttpOnly: true, SameSite: http.SameSiteLaxMode})
	s.render(w, http.StatusOK, "message.html", page{Title: "Goodbye", Message: "You have left. The link you were sent opens your account again.", Stranger: true})
}

func (s *Service) nothing(v *visit) { s.notFound(v) }

func (s *Service) notFound(v *visit) {
	s.metrics.pages.WithLabelValues(resultNotFound).Inc()
	s.render(v.w, http.StatusNotFound, "message.html", page{Title: "Not found", Message: "There is no such page in your account."})
}
