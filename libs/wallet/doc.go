// Package wallet is the arithmetic of prepaid units: what is left of each grant
// of a wallet, and what a grant leaves when it ends.
//
// # Model
//
// balance = granted − consumed + refunded − forfeited. Redis counts use as two
// numbers of the whole wallet, so which grant a unit came from is not recorded
// but follows: a Wallet knows its grants as of one net use (consumed −
// refunded), and At moves it to another. More use is taken from the grants in
// their order (higher priority, sooner end, earlier grant); less use is given
// back in the reverse order. Use beyond all grants (overdraft, use that was
// settled afterwards) is Debt, which the next grant pays. What is given back
// when no live grant has room, since the one it came from has ended, is
// Returned: units without an end, spent last.
//
// A grant is usable before its ExpiresAt, and not at it. What it leaves is
// forfeited once, by whoever charges that number: Claim says how much that is
// as a function of use, so that a script can judge it by the use it finds, in
// the step that charges it; End then takes the grant out.
//
// # Invariants
//
//   - The grants' Left and Returned, less Debt, are the balance, always.
//   - While there is Debt nothing is left. No number is ever negative.
//   - Functions are pure: they return a new Wallet and keep nothing.
//
// The control plane adds grants and shows what is left, the keeper ends grants;
// both keep the Wallet in Postgres (schemas/postgres/controlplane). Integers are
// units, exact below 2^53.
package wallet
