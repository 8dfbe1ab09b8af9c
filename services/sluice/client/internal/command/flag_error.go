package command

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sluice-platform/sluice/libs/didyoumean"
)

// FlagError says what would be right where a flag's value or name is wrong, in
// place of the parser's own words. It is for cobra's SetFlagErrorFunc.
func FlagError(cmd *cobra.Command, err error) error {
	var value *pflag.InvalidValueError
	var name *pflag.NotExistError
	switch {
	case errors.As(err, &value):
		return valueError(value)
	case errors.As(err, &name) && name.GetSpecifiedShortnames() == "":
		var known []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) { known = append(known, f.Name) })
		if near := didyoumean.Nearest(name.GetSpecifiedName(), known); near != "" {
			return fmt.Errorf("%w: did you mean --%s?", err, near)
		}
	}
	return err
}

func valueError(e *pflag.InvalidValueError) error {
	flag := e.GetFlag()
	what := ""
	switch kind := flag.Value.Type(); {
	case kind == "duration":
		what = "a duration such as 90s, 30m or 1h"
	case kind == "bool":
		what = "true or false, or be given without a value"
	case kind == "float64":
		what = "a number such as 0.5"
	case kind == "stringSlice":
		what = "values with commas between them"
	case errors.Is(e, strconv.ErrRange):
		what = "a whole number of at most 64 bits"
	case kind == "int" || kind == "int64":
		what = "a whole number"
	default:
		return e
	}
	return fmt.Errorf("--%s must be %s, not %q", flag.Name, what, e.GetValue())
}
