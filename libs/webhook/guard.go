package webhook

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"syscall"
)

// ErrRefused: the address is none that a webhook may reach.
var ErrRefused = errors.New("the address is not public (webhooks.allow can allow it)")

// refused are ranges that are not public unicast, besides those net/netip
// knows by name. IANA special-purpose registries:
// https://www.iana.org/assignments/iana-ipv4-special-registry,
// https://www.iana.org/assignments/iana-ipv6-special-registry
var refused = prefixes(
	"0.0.0.0/8",       // this network
	"100.64.0.0/10",   // shared, behind carriers' NAT
	"192.0.0.0/24",    // protocol assignments
	"192.0.2.0/24",    // documentation
	"192.88.99.0/24",  // 6to4 relays, deprecated
	"198.18.0.0/15",   // benchmarks
	"198.51.100.0/24", // documentation
	"203.0.113.0/24",  // documentation
	"240.0.0.0/4",     // reserved, and broadcast
	"64:ff9b:1::/48",  // local translation
	"100::/64",        // discard
	"2001::/23",       // protocol assignments, Teredo among them
	"2001:db8::/32",   // documentation
	"3fff::/20",       // documentation
	"5f00::/16",       // segment routing
	"fec0::/10",       // site-local, deprecated
)

// embedding are IPv6 ranges that carry an IPv4 address, at a byte offset.
var embedding = []struct {
	netip.Prefix
	at int
}{
	{netip.MustParsePrefix("64:ff9b::/96"), 12}, // NAT64
	{netip.MustParsePrefix("2002::/16"), 2},     // 6to4
	{netip.MustParsePrefix("::/96"), 12},        // IPv4-compatible, deprecated
}

func prefixes(texts ...string) []netip.Prefix {
	all := make([]netip.Prefix, len(texts))
	for i, t := range texts {
		all[i] = netip.MustParsePrefix(t)
	}
	return all
}

// guard judges addresses.
type guard struct {
	// allow are ranges that may be reached though they are not public.
	allow []netip.Prefix
}

// check returns ErrRefused for an address that must not be reached.
func (g guard) check(addr netip.Addr) error {
	addr = addr.Unmap().WithZone("")
	if within(g.allow, addr) || public(addr) {
		return nil
	}
	return ErrRefused
}

func within(ranges []netip.Prefix, addr netip.Addr) bool {
	return slices.ContainsFunc(ranges, func(p netip.Prefix) bool { return p.Contains(addr) })
}

func public(addr netip.Addr) bool {
	if !addr.IsGlobalUnicast() || addr.IsPrivate() || within(refused, addr) {
		return false
	}
	if addr.Is6() {
		for _, e := range embedding {
			if e.Contains(addr) {
				b := addr.As16()
				return public(netip.AddrFrom4([4]byte(b[e.at : e.at+4])))
			}
		}
	}
	return true
}

// control is for net.Dialer: it sees the address that is about to be
// connected to, after the name was resolved.
func (g guard) control(network, address string, _ syscall.RawConn) error {
	if network != "tcp4" && network != "tcp6" {
		return fmt.Errorf("%w: network %s", ErrRefused, network)
	}
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("%w: %s", ErrRefused, address)
	}
	return g.check(at.Addr())
}
