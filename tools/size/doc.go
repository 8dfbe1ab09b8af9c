// Command size measures the tree and says what is larger than its bound.
//
// It prints, for schemas, libs and services: lines outside tests; files and
// lines of each package; the longest chain of imports among our packages; and
// for each package how many of the arrows between its files point back up. A
// second table has the areas and documents that have bounds of their own.
//
//	size [-root ..]                  the tables
//	size [-root ..] -check           and exit 1 when anything is over its bound
//	size [-root ..] -json            the same as JSON, for services/house
//	size [-root ..] -arrows PACKAGE  the best order of a package's files and the arrows against it
//
// An arrow leads from one file of a package to another whose function, type,
// method, constant or variable it uses. The files are put into the order in
// which the fewest arrows point from a lower file to a higher one (users above
// what they use); those that still do are the arrows back up.
package main
