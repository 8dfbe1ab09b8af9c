package plan

import (
	"net/mail"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/sluice-platform/sluice/libs/period"
	"github.com/sluice-platform/sluice/schemas/sales"
)

// Bounds of texts, in characters.
const (
	maxID      = 128
	maxName    = 256
	maxEmail   = 254 // RFC 5321, 4.5.3.1
	maxAddress = 1024
)

// ValidateCustomer returns what is wrong with a customer as REST takes it, nil
// if nothing is.
func ValidateCustomer(c sales.Customer) []FieldError {
	v := &validator{}
	v.id("id", c.ID)
	if strings.Contains(c.ID, "/") {
		v.add("id", "must hold no slash, which ends the tenant in tenant/user")
	}
	if strings.Contains(c.ID, "*") {
		v.add("id", "must hold no *, which stands for every value in rules")
	}
	v.text("name", c.Name, 1, maxName)
	v.timezone("timezone", c.Timezone)
	if c.Currency != "" {
		v.currency("currency", c.Currency)
	}
	if c.Contact != nil {
		v.contact(*c.Contact)
	}
	return v.errs
}

func (v *validator) contact(c sales.Contact) {
	v.text("contact.name", c.Name, 0, maxName)
	v.text("contact.taxId", c.TaxID, 0, maxName)
	if utf8.RuneCountInString(c.Address) > maxAddress || !printable(strings.ReplaceAll(c.Address, "\n", "")) {
		v.add("contact.address", "must have at most %d printable characters in lines", maxAddress)
	}
	if c.Email == "" {
		return
	}
	if a, err := mail.ParseAddress(c.Email); err != nil || a.Address != c.Email || len(c.Email) > maxEmail {
		v.add("contact.email", "must be one address such as billing@acme.example, without a name")
	}
}

// id checks an id that stands in URLs.
func (v *validator) id(field, s string) {
	v.text(field, s, 1, maxID)
	if s == "." || s == ".." || s == "/" {
		v.add(field, "must not be a slash or dot segment: it could not stand in a URL")
	}
}

func (v *validator) text(field, s string, least, most int) {
	if n := utf8.RuneCountInString(s); n < least || n > most || !printable(s) {
		v.add(field, "must have %d to %d printable characters", least, most)
	}
}

func (v *validator) timezone(field, zone string) {
	if _, err := period.New(period.Spec{Unit: period.NameDay, Zone: zone}); err != nil {
		v.add(field, "must be a name of the IANA time zone database, such as Europe/Istanbul, or UTC")
	}
}

func printable(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) })
}
