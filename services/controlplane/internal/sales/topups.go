package sales

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"reflect"
	"regexp"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/sluice-platform/sluice/services/controlplane/internal/api"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/uuid"

	"github.com/sluice-platform/sluice/libs/wallet"
	"github.com/sluice-platform/sluice/libs/wallet/ledger"
)

// NewTopUp is what a wallet is topped up with.
type NewTopUp struct {
	Amount    int64      `json:"amount" minimum:"1" doc:"Units to grant: 1 to 2^53 − 1, and so with all that was granted before."`
	ExpiresAt *time.Time `json:"expiresAt,omitempty" doc:"The first instant that the units cannot be used any more: what is left is forfeited. Absent is never. In the future, and at most controlplane.maxAhead (10 years by default) ahead."`
	ExpiresIn string     `json:"expiresIn,omitempty" doc:"In place of expiresAt, for callers without a clock: how long from now, such as 720h; at least 1s."`
	Priority  int        `json:"priority,omitempty" doc:"Grants of higher priority are spent first; of equal ones those that expire sooner. −1000000 to 1000000."`
	Note      string     `json:"note,omitempty" doc:"For people: an order's number, say. At most 256 printable characters."`
}

// TopUp is a grant as it was made.
type TopUp struct {
	ID        string     `json:"id" doc:"The grant's."`
	Customer  string     `json:"customer"`
	Metric    string     `json:"metric"`
	Amount    int64      `json:"amount"`
	ExpiresAt *time.Time `json:"expiresAt,omitempty"`
	Priority  int        `json:"priority"`
	Note      string     `json:"note,omitempty"`
	GrantedAt time.Time  `json:"grantedAt"`
	Balance   int64      `json:"balance" doc:"What the wallet held with it, by the use that was known then."`
}

const (
	topUpsPath = "/topups"

	maxNote     = 256 // characters
	maxPriority = 1_000_000
)

// idempotencyKey is visible ASCII, quotes and all.
var idempotencyKey = regexp.MustCompile(`^[!-~]{1,255}$`)

func (s *Handlers) registerTopUps(a *api.API) {
	tags := []string{"wallets"}
	api.Register(a, huma.Operation{OperationID: "create-topup", Method: http.MethodPost, Path: walletPath + topUpsPath, Tags: tags,
		Summary: "Top up a wallet, once for each Idempotency-Key",
		Description: "A repetition is answered as the first was, and grants nothing. 422 is the key with another request, 409 a repetition " +
			"while the first is under way. In force on every gateway within milliseconds.",
		DefaultStatus: http.StatusCreated}, reflect.TypeFor[NewTopUp](), s.createTopUp)
	api.Register(a, huma.Operation{OperationID: "get-topup", Method: http.MethodGet, Path: walletPath + topUpsPath + "/{topup}", Tags: tags,
		Summary: "Get a top-up"}, nil, s.getTopUp)
}

// topUp is a request that has been checked.
type topUp struct {
	customer, metric, key string
	grant                 wallet.Grant
	note, actor           string
	// end is when the grant expires, nil for never.
	end *time.Time
	// sum is the SHA-256 of what is asked: repetitions have the same, however
	// their JSON is written.
	sum [sha256.Size]byte
}

func (s *Handlers) createTopUp(ctx context.Context, in *struct {
	WalletInput
	Key string `header:"Idempotency-Key" doc:"Required: 1 to 255 visible ASCII characters, a new one for each top-up of a customer."`
}) (*api.Document[TopUp], error) {
	t, err := s.decodeTopUp(ctx, in.WalletInput, in.Key)
	if err != nil {
		return nil, err
	}
	known, mine := s.answers.await(ctx, t)
	if known == nil {
		if known, err = s.topUp(ctx, t); err != nil {
			if mine {
				s.answers.forget(ctx, t)
			}
			return nil, err
		}
		s.answers.keep(ctx, t, known)
	}
	if !known.answers(t) {
		return nil, api.NewProblem(http.StatusUnprocessableEntity, "idempotency-key-reused",
			"the Idempotency-Key came before, with another request; a new top-up needs a new key")
	}
	return known.TopUp.answer(), nil
}

// decodeTopUp reads and checks a request; nothing of it depends on what is stored.
func (s *Handlers) decodeTopUp(ctx context.Context, in WalletInput, key string) (*topUp, error) {
	var body NewTopUp
	if p := api.Decode(ctx, &body); p != nil {
		return nil, p
	}
	now := s.Store.Now().UTC().Truncate(time.Microsecond)
	found := append(in.check(), s.checkTopUp(body)...)
	if !idempotencyKey.MatchString(key) {
		found = append(found, api.InHeader("Idempotency-Key", "must be given, 1 to 255 visible ASCII characters: a new one for each top-up, the same to repeat it"))
	}
	if len(found) > 0 {
		return nil, api.Invalid(found...)
	}
	if body.ExpiresAt != nil { // as Postgres keeps it
		*body.ExpiresAt = body.ExpiresAt.UTC().Truncate(time.Microsecond)
	}
	canonical, err := json.Marshal([]any{in.Metric, body})
	if err != nil {
		return nil, fmt.Errorf("encode top-up: %w", err)
	}
	id, err := uuid.NewV7()
	if err != nil {
		return nil, fmt.Errorf("make id of grant: %w", err)
	}
	t := &topUp{
		customer: in.ID, metric: in.Metric, key: key, note: body.Note, actor: api.Actor(ctx), sum: sha256.Sum256(canonical),
		end:   body.end(now),
		grant: wallet.Grant{ID: "grant_" + id.String(), Amount: body.Amount, Priority: body.Priority, GrantedAt: now},
	}
	if t.end != nil {
		t.grant.ExpiresAt = *t.end
	}
	return t, nil
}

// end is when a grant made now expires, nil for never; of a body that was checked.
func (n NewTopUp) end(now time.Time) *time.Time {
	if n.ExpiresAt != nil {
		return n.ExpiresAt
	}
	life, err := time.ParseDuration(n.ExpiresIn)
	if err != nil {
		return nil
	}
	end := now.Add(life).Truncate(time.Microsecond)
	return &end
}

func (s *Handlers) checkTopUp(n NewTopUp) (found []api.FieldError) {
	add := func(field, message string) { found = append(found, api.InBody(field, message)) }
	if n.Amount < 1 || n.Amount > wallet.MaxTotal {
		add("amount", fmt.Sprintf("must be a whole number of units, 1 to %d", int64(wallet.MaxTotal)))
	}
	if n.Priority < -maxPriority || n.Priority > maxPriority {
		add("priority", fmt.Sprintf("must be %d to %d", -maxPriority, maxPriority))
	}
	if utf8.RuneCountInString(n.Note) > maxNote || strings.ContainsFunc(n.Note, func(r rune) bool { return !unicode.IsPrint(r) }) {
		add("note", fmt.Sprintf("must be at most %d printable characters", maxNote))
	}
	// That its end is not past is judged of what is no repetition.
	if n.ExpiresAt != nil {
		if message := s.Bounds.Judge(api.BoundedTime{Given: n.ExpiresAt}); message != "" {
			add("expiresAt", message)
		}
	}
	if n.ExpiresIn == "" {
		return found
	}
	life, err := time.ParseDuration(n.ExpiresIn)
	switch {
	case n.ExpiresAt != nil:
		add("expiresIn", "must be left out where expiresAt is given")
	case err != nil || life < time.Second || life > s.Bounds.MaxAhead:
		add("expiresIn", fmt.Sprintf("must be a duration of 1s to %s (controlplane.maxAhead), such as 720h; given is %q", s.Bounds.MaxAhead, api.Printable(n.ExpiresIn)))
	}
	return found
}

// document makes the answer of a top-up, the first one's and its repetitions'.
func (t TopUp) answer() *api.Document[TopUp] {
	in := WalletInput{ID: t.Customer, Metric: t.Metric}
	return &api.Document[TopUp]{Status: http.StatusCreated, Location: in.url() + topUpsPath + "/" + url.PathEscape(t.ID), Body: t}
}

func (s *Handlers) getTopUp(ctx context.Context, in *struct {
	WalletInput
	TopUp string `path:"topup" doc:"The id that the top-up was answered with."`
}) (*struct{ Body TopUp }, error) {
	e, ok, err := ledger.TopUp(ctx, s.Store.Pool, in.key(), in.TopUp)
	switch {
	case err != nil:
		return nil, err
	case !ok:
		return nil, api.NotFound()
	}
	return &struct{ Body TopUp }{TopUp{
		ID: e.GrantID, Customer: in.ID, Metric: in.Metric, Amount: e.Amount, ExpiresAt: timeOrNull(e.ExpiresAt),
		Priority: e.Priority, Note: e.Note, GrantedAt: e.At, Balance: e.Balance,
	}}, nil
}
