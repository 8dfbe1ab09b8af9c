package gateway

import (
	"errors"
	"net/http"

	"github.com/sluice-platform/sluice/libs/jwt"
)

// verifier proves identities by tokens: *jwt.Verifier. It takes no lock and
// waits for nothing; its errors hold no part of the token.
type verifier interface {
	Verify(token string) (jwt.Identity, error)
}

// identifyByToken takes the identity of a token of a configured issuer and
// leaves every other bearer token to the service. A token that claims to be of
// such an issuer and does not hold is refused: to let it pass as nobody's
// would turn an expired login into a silent change of who pays.
func (g *gate) identifyByToken(x *exchange) bool {
	if g.tokens == nil {
		return true
	}
	for _, value := range x.r.Header[headerAuthorization] {
		token := bearer(value)
		if token == "" {
			continue
		}
		who, err := g.tokens.Verify(token)
		switch {
		case errors.Is(err, jwt.ErrMalformed), errors.Is(err, jwt.ErrUnknownIssuer):
		case errors.Is(err, jwt.ErrNoKeys):
			return g.refuseForNow(x, refusedNoIssuer, "The token cannot be judged: the keys of its issuer were not fetched yet.")
		case err != nil:
			challenge(x, invalidToken)
			return g.refuse(x, refusedToken, &problem{status: http.StatusUnauthorized, title: "Token refused", detail: "The token is refused: " + err.Error() + "."})
		case x.who.token != "":
			return g.refuseHeader(x, headerAuthorization+" carries more than one token")
		default:
			x.who = identity{tenant: who.Tenant, user: who.User, application: who.Application, token: token}
		}
	}
	return true
}
