// Package didyoumean finds the name that a misspelt one was meant to be, so that
// an error can say so.
//
// It is fed by what reads names that people write: fields of JSON and YAML
// (libs/strictjson), keys of the configuration.
package didyoumean
