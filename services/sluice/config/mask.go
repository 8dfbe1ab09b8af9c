package config

import (
	"net/url"
	"strings"

	"github.com/sluice-platform/sluice/libs/service"
)

// mask stands for what is not shown, as in service.Secret.
const mask = "***"

// maskUserinfo masks user and password of a text that is a URL with some: many
// put a token there, as either.
func maskUserinfo(text string) string {
	if !strings.Contains(text, "://") || !strings.Contains(text, "@") {
		return text
	}
	parts, ok := splitURL(text)
	if !ok {
		return mask
	}
	parts.userinfo = mask
	return parts.String()
}

// maskPassword masks the password of a connection URL, and those among its
// parameters; what cannot be taken apart for certain is masked whole.
func maskPassword(secret service.Secret) string {
	if secret == "" {
		return ""
	}
	parts, ok := splitURL(secret.Reveal())
	if !ok {
		return mask
	}
	if user, _, has := strings.Cut(parts.userinfo, ":"); has {
		parts.userinfo = user + ":" + mask
	}
	path, query, has := strings.Cut(parts.rest, "?")
	if !has {
		return parts.String()
	}
	pairs := strings.Split(query, "&")
	for i, pair := range pairs {
		name, _, _ := strings.Cut(pair, "=")
		plain, err := url.QueryUnescape(name)
		if err != nil || strings.Contains(strings.ToLower(plain), "password") {
			pairs[i] = name + "=" + mask
		}
	}
	parts.rest = path + "?" + strings.Join(pairs, "&")
	return parts.String()
}

// urlParts are a URL's, as written: net/url would escape the mask.
type urlParts struct{ scheme, userinfo, host, rest string }

// splitURL reports whether text is a URL whose password, if it has one, is
// where it should be. One with a / or ? in it that is not escaped leaves an @
// behind the host.
func splitURL(text string) (urlParts, bool) {
	u, err := url.Parse(text)
	scheme, rest, found := strings.Cut(text, "://")
	if err != nil || !found || u.Host == "" {
		return urlParts{}, false
	}
	end := strings.IndexAny(rest, "/?#")
	if end < 0 {
		end = len(rest)
	}
	p := urlParts{scheme: scheme, host: rest[:end], rest: rest[end:]}
	if at := strings.LastIndexByte(p.host, '@'); at >= 0 {
		p.userinfo, p.host = p.host[:at], p.host[at+1:]
	}
	return p, !strings.Contains(p.rest, "@")
}

// String puts the parts together again.
func (p urlParts) String() string {
	at := ""
	if p.userinfo != "" {
		at = "@"
	}
	return p.scheme + "://" + p.userinfo + at + p.host + p.rest
}
