package portal

import (
	"bytes"
	"embed"
	"html/template"
	"net/http"
	"strconv"
	"time"

	"github.com/sluice-platform/sluice/libs/invoice/render"
)

//go:embed pages
var files embed.FS

// page is what every page has, and what one of them shows.
type page struct {
	Title   string
	Message string
	// Stranger: no account is open, and there is nothing to go to.
	Stranger bool
	Name     string
	Content  any
}

var pages = parsePages("overview.html", "topups.html", "invoices.html", "message.html")

func parsePages(names ...string) map[string]*template.Template {
	all := map[string]*template.Template{}
	for _, name := range names {
		all[name] = template.Must(template.New("frame.html").Funcs(template.FuncMap{
			"units": units, "day": day, "signed": signed, "period": render.Period,
		}).ParseFS(files, "pages/frame.html", "pages/"+name))
	}
	return all
}

// render writes a page; one that cannot be made is a bug, and says so to nobody
// but the log.
func (s *Service) render(w http.ResponseWriter, status int, name string, p page) {
	var b bytes.Buffer
	if err := pages[name].Execute(&b, p); err != nil {
		s.deps.Log.Error("page cannot be made", "page", name, "error", err)
		http.Error(w, "This page cannot be shown.", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(b.Bytes()) // the browser is gone, and nobody else to tell
}

// show writes a page of an account.
func (s *Service) show(v *visit, name string, p page) {
	s.metrics.pages.WithLabelValues(resultShown).Inc()
	s.render(v.w, http.StatusOK, name, p)
}

// away answers when the account cannot be read.
func (s *Service) away(v *visit, err error) {
	s.metrics.pages.WithLabelValues(resultAway).Inc()
	s.deps.Log.WarnContext(v.r.Context(), "account cannot be shown", "error", err)
	v.w.Header().Set("Retry-After", "10")
	s.render(v.w, http.StatusServiceUnavailable, "message.html", page{
		Title: "One moment", Message: "Your figures cannot be read right now. Nothing is lost: load this page again in a moment.",
	})
}

func style(w http.ResponseWriter, _ *http.Request) {
	text, err := files.ReadFile("pages/style.css")
	if err != nil {
		http.NotFound(w, nil)
		return
	}
	w.Header().Set("Content-Type", "text/css; charset=utf-8")
	w.Header().Set("Cache-Control", "max-age=3600")
	_, _ = w.Write(text) // the browser is gone, and nobody else to tell
}

// units writes a number in groups of three, with a narrow space between.
func units(n int64) string {
	text := strconv.FormatInt(n, 10)
	sign := ""
	if n < 0 {
		sign, text = "−", text[1:]
	}
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "\u202f" + text[i:]
	}
	return sign + text
}

// signed says which way a number goes.
func signed(n int64) string {
	if n > 0 {
		return "+" + units(n)
	}
	return units(n)
}

func day(t time.Time) string { return t.Format(time.DateOnly) }
