package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/sluice-platform/sluice/services/sluice/client/internal/rest"

	"github.com/spf13/cobra"
)

type applyFlags struct {
	files                     []string
	dryRun, prune, allowEmpty bool
}

func (k kind[T]) applyCommand(c *rest.Connection) *cobra.Command {
	var flags applyFlags
	cmd := &cobra.Command{
		Use:   "apply -f FILE|DIR|-",
		Short: "Make the " + k.noun + "s what files say, and print what changes",
		Long: "Make the " + k.noun + "s what files say.\n\n" +
			"Files are YAML (several documents) or JSON; each document is " + k.one() + " or a list of them. All are checked before\n" +
			"anything is written: here, and then by the control plane, which tries every change by all it knows and takes none if one\n" +
			"would be refused. Printed for each: + create, ~ update with the fields that change, = unchanged, - delete (--prune).\n" +
			"A document that gives a version, as get prints it, is refused where the control plane's is another by now.\n" +
			"With a token that may read only, --dry-run compares without that trial, and says so.",
		Example: "  sluice " + k.noun + "s apply -f " + k.noun + "s/ --dry-run\n" +
			"  sluice " + k.noun + "s apply -f " + k.noun + "s.yaml --prune\n" +
			"  cat more.yaml | sluice " + k.noun + "s apply -f -",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return fmt.Errorf("files are given with -f: did you mean -f %s?", strings.Join(args, " -f "))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			return k.apply(cmd.Context(), c, flags, cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	cmd.Flags().StringArrayVarP(&flags.files, "file", "f", nil, "file, folder or - for standard input; may be repeated")
	cmd.Flags().BoolVar(&flags.dryRun, "dry-run", false, "check, print what would change, and change nothing")
	cmd.Flags().BoolVar(&flags.prune, "prune", false, "delete every "+k.noun+" that no file names")
	cmd.Flags().BoolVar(&flags.allowEmpty, "allow-empty", false, "let --prune delete all when the files are empty")
	_ = cmd.MarkFlagRequired("file") // the flag was added just above
	return cmd
}

func (k kind[T]) apply(ctx context.Context, c *rest.Connection, flags applyFlags, in io.Reader, out, warnings io.Writer) error {
	documents, err := load(flags.files, in)
	if err != nil {
		return err
	}
	want, err := k.decodeAll(documents, k.wrongKind(ctx, c))
	if err != nil {
		return err
	}
	if len(want) == 0 && flags.prune && !flags.allowEmpty {
		return fmt.Errorf("no %s in %s: --prune would delete all there are; give --allow-empty if that is meant", k.noun, strings.Join(flags.files, ", "))
	}
	if len(want) == 0 {
		fmt.Fprintf(warnings, "there is no %s in %s\n", k.noun, strings.Join(flags.files, ", "))
	}
	have, err := rest.All[T](ctx, c, k.path, url.Values{}, 0)
	if err != nil {
		return fmt.Errorf("read %ss: %w", k.noun, err)
	}
	steps, err := k.plan(want, have, flags.prune)
	if err != nil {
		return err
	}
	switch err := k.check(ctx, c, steps, out); {
	case err != nil && flags.dryRun && unchecked(err):
		fmt.Fprintln(warnings, "warning: not checked by the control plane, since the token may read only")
	case err != nil:
		return err
	}
	if err := k.execute(ctx, c, steps, flags.dryRun, out); err != nil {
		return err
	}
	applied := make([]T, 0, len(want))
	for _, key := range slices.Sorted(maps.Keys(want)) {
		applied = append(applied, want[key].value)
	}
	k.warnOfAll(ctx, c, applied, warnings)
	return nil
}

// execute prints and does the steps, which were checked: what fails now was
// changed meanwhile, or the control plane went away. One that fails does not keep
// others from being done, but keeps everything from being deleted.
func (k kind[T]) execute(ctx context.Context, c *rest.Connection, steps []step[T], dryRun bool, out io.Writer) error {
	counts := map[action]int{}
	var failed []error
	for _, s := range steps {
		if s.action == remove && len(failed) > 0 {
			fmt.Fprintf(out, "! kept %s %s, since a write before failed\n", k.noun, s.key)
			continue
		}
		k.print(out, s)
		if !dryRun && s.action != unchanged {
			if err := k.perform(ctx, c, s, false); err != nil {
				failed = append(failed, fmt.Errorf("%s %s %q: %w", s.action.word(), k.noun, s.key, err))
				continue
			}
		}
		counts[s.action]++
	}
	done := fmt.Sprintf("%d created, %d updated, %d unchanged, %d deleted", counts[create], counts[update], counts[unchanged], counts[remove])
	if dryRun {
		done = "dry run, nothing was changed; it would be: " + done
	}
	fmt.Fprintln(out, done)
	return errors.Join(failed...)
}

func (k kind[T]) print(out io.Writer, s step[T]) {
	fmt.Fprintf(out, "%c %s %s %s\n", s.action, s.action.word(), k.noun, s.key)
	if s.action == update {
		for _, f := range s.fields {
			fmt.Fprintf(out, "    %s\n", f)
		}
	}
}

// perform does a step, or has the control plane try it only.
func (k kind[T]) perform(ctx context.Context, c *rest.Connection, s step[T], dryRun bool) error {
	r := rest.Call{Method: http.MethodPut, Path: k.item(s.key), Body: s.after, Header: map[string]string{"If-Match": s.etag}}
	switch s.action {
	case create:
		r.Header = map[string]string{"If-None-Match": "*"}
	case remove:
		r.Method, r.Body = http.MethodDelete, nil
	}
	if dryRun {
		r.Path += "?dryRun=true"
	}
	err := c.Do(ctx, r)
	var answer *rest.AnswerError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &answer) && (answer.Status == http.StatusPreconditionFailed || answer.Status == http.StatusNotFound):
		return fmt.Errorf("was changed by someone else meanwhile, and left alone; apply again to compare anew: %w", err)
	case s.where != "":
		return fmt.Errorf("%s: %w", s.where, err)
	}
	return err
}
