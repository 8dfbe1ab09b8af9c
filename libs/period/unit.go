package period

// Unit is the length of a period.
type Unit uint8

// Units. A period of UnitNever has no end, so its counter is never renewed.
const (
	UnitMonth Unit = iota
	UnitHour
	UnitDay
	UnitWeek
	UnitYear
	UnitNever
)

// Names of units as rules write them.
const (
	NameHour  = "hour"
	NameDay   = "day"
	NameWeek  = "week"
	NameMonth = "month"
	NameYear  = "year"
	NameNever = "never"
)

var unitNames = [...]string{
	UnitMonth: NameMonth, UnitHour: NameHour, UnitDay: NameDay,
	UnitWeek: NameWeek, UnitYear: NameYear, UnitNever: NameNever,
}

// String returns the unit as rules write it.
func (u Unit) String() string {
	if int(u) < len(unitNames) {
		return unitNames[u]
	}
	return "unknown"
}

func parseUnit(name string) (Unit, bool) {
	for u, n := range unitNames {
		if n == name {
			return Unit(u), true
		}
	}
	return 0, false
}
