// Package render shows an invoice to people: as a page of HTML, and as a PDF.
//
// Both are made from the invoice alone, without a clock, a store or the
// network, and hold no script. The same invoice gives the same bytes. Texts of
// customers and plans are data in both: HTML escapes them, and a PDF has no
// way to run them.
//
// The PDF carries its font (Go, https://go.dev/blog/go-fonts, BSD licence): Latin
// with its accents, Greek and Cyrillic. Letters beyond show as boxes there.
package render
