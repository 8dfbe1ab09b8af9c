// Package sales is the contract of what is sold to whom: the documents of the
// tables customers, plans, plan_versions and subscriptions (schemas/postgres/
// controlplane), as the control plane's REST API takes and gives them.
//
// The control plane writes them; whoever makes invoices reads them. The types
// say nothing of validity; libs/plan does.
package sales
