package plan

import "strings"

// currencies are the active codes of ISO 4217 that money is paid in, each with
// the digits of its minor unit: without the codes of metals, of units of
// account, for testing and for none.
var currencies = parseCurrencies(map[int]string{
	0: "BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX VND VUV XAF XOF XPF",
	2: "AED AFN ALL AMD AOA ARS AUD AWG AZN BAM BBD BDT BMD BND BOB BRL BSD BTN BWP BYN BZD CAD CDF CHF CNY COP CRC CUP CVE CZK " +
		"DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD GTQ GYD HKD HNL HTG HUF IDR ILS INR IRR JMD KES KGS KHR KPW " +
		"KYD KZT LAK LBP LKR LRD LSL MAD MDL MGA MKD MMK MNT MOP MRU MUR MVR MWK MXN MYR MZN NAD NGN NIO NOK NPR NZD PAB PEN " +
		"PGK PHP PKR PLN QAR RON RSD RUB SAR SBD SCR SDG SEK SGD SHP SLE SOS SRD SSP STN SVC SYP SZL THB TJS TMT TOP TRY TTD " +
		"TWD TZS UAH USD UYU UZS VED VES WST XCD XCG YER ZAR ZMW ZWG",
	3: "BHD IQD JOD KWD LYD OMR TND",
})

func parseCurrencies(byDigits map[int]string) map[string]int {
	out := map[string]int{}
	for digits, codes := range byDigits {
		for code := range strings.FieldsSeq(codes) {
			out[code] = digits
		}
	}
	return out
}

// MinorDigits returns how many digits the minor unit of a currency has: 2 for
// EUR, 0 for JPY. ok is false for what is no currency of ISO 4217.
func MinorDigits(currency string) (digits int, ok bool) {
	digits, ok = currencies[currency]
	return digits, ok
}

func (v *validator) currency(field, code string) {
	if _, ok := MinorDigits(code); !ok {
		v.add(field, "must be a currency of ISO 4217 in capitals, such as EUR")
	}
}
