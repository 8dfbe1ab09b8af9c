package sales

import "time"

// States of an invoice.
const (
	// InvoiceDraft follows what is used, until a while after its period.
	InvoiceDraft = "draft"
	// InvoiceFinal has a number and never changes. What comes to be known later
	// is a correction on a later one.
	InvoiceFinal = "final"
)

// Kinds of lines.
const (
	LineFee        = "fee"
	LineUsage      = "usage"
	LineTopup      = "topup"
	LineCorrection = "correction"
)

// Invoice is what a customer owes for a period, in one currency. All amounts
// are decimals with the currency's own number of digits, such as "49.00".
type Invoice struct {
	// ID names it from its first draft on.
	ID string `json:"id"`
	// Number is given when it becomes final: INV-2026-000017, without gaps.
	Number   string `json:"number,omitempty"`
	Customer string `json:"customer"`
	// Payer is the customer as it was when the invoice was last worked out.
	Payer    Customer `json:"payer"`
	Currency string   `json:"currency"`
	// Start is inclusive, End is not. Timezone is whose midnights they are.
	Start    time.Time `json:"start"`
	End      time.Time `json:"end"`
	Timezone string    `json:"timezone"`
	// Status is draft or final.
	Status string        `json:"status"`
	Lines  []InvoiceLine `json:"lines"`
	// Total is the sum of the lines' amounts.
	Total string `json:"total"`
	// FinalFrom is when a draft becomes final: the end and the days of grace.
	FinalFrom time.Time `json:"finalFrom"`
	// FinalizedAt is when it became final, nil of a draft.
	FinalizedAt *time.Time `json:"finalizedAt,omitempty"`
}

// InvoiceLine is one amount and what it is for.
type InvoiceLine struct {
	Kind        string `json:"kind"`
	Plan        string `json:"plan,omitempty"`
	PlanVersion int64  `json:"planVersion,omitempty"`
	Metric      string `json:"metric,omitempty"`
	// Text says it to people.
	Text string `json:"text"`
	// Quantity is units, or of a fee the days it is for.
	Quantity int64 `json:"quantity"`
	// UnitPrice is of one unit; empty of a fee and a correction.
	UnitPrice string `json:"unitPrice,omitempty"`
	// PeriodFee is of a fee: what a whole period of the plan costs, of which
	// Amount is the part for Quantity days. Older invoices have none.
	PeriodFee string `json:"periodFee,omitempty"`
	Amount    string `json:"amount"`
	// Counter is the counter that a metric's first usage line is worked out
	// from, Consumed and Refunded its totals: their difference is the quantity of
	// all the metric's lines.
	Counter  string `json:"counter,omitempty"`
	Consumed int64  `json:"consumed,omitempty"`
	Refunded int64  `json:"refunded,omitempty"`
	// Corrects is the id of the invoice that a correction belongs to.
	Corrects string `json:"corrects,omitempty"`
}
