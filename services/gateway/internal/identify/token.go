package identify

import (
	"errors"
	"net/http"

	"github.com/sluice-platform/sluice/services/gateway/internal/identify/jwt"
	"github.com/sluice-platform/sluice/services/gateway/internal/reject"
)

// Verifier proves identities by tokens: *jwt.Verifier. It takes no lock and waits
// for nothing; its errors contain no part of the token.
type Verifier interface {
	Verify(token string) (jwt.Identity, error)
}

// byToken takes the identity of a token of a configured issuer and leaves every
// other bearer token to the service. A token that claims to be of such an issuer
// and is invalid is rejected: as an anonymous request it would silently be charged
// to somebody else once a login expires.
func byToken(tokens Verifier, h http.Header) (found Identity, rejected *reject.Rejection) {
	if tokens == nil {
		return found, nil
	}
	for _, value := range h[HeaderAuthorization] {
		token := Bearer(value)
		if token == "" {
			continue
		}
		who, err := tokens.Verify(token)
		switch {
		case errors.Is(err, jwt.ErrMalformed), errors.Is(err, jwt.ErrUnknownIssuer):
		case errors.Is(err, jwt.ErrNoKeys):
			return found, reject.Busy(reject.IssuerAway, "The token cannot be judged: the keys of its issuer were not fetched yet.")
		case err != nil:
			return found, &reject.Rejection{
				Reason: reject.TokenRefused, Challenge: reject.InvalidToken,
				Problem: reject.Problem{Status: http.StatusUnauthorized, Title: "Token refused", Detail: "The token is refused: " + err.Error() + "."},
			}
		case found.Token != "":
			return found, badHeader(HeaderAuthorization + " carries more than one token")
		default:
			found = Identity{Tenant: who.Tenant, User: who.User, Application: who.Application, Token: token}
		}
	}
	return found, nil
}
