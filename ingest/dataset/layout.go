package dataset

import (
	"errors"
	"fmt"
	"os"
	"path"
	"strconv"
	"strings"
)

// SchemaVersion is the version of the tables that this package writes. It reads
// this one only: a dataset is made again from its traces with one command.
const SchemaVersion = 2

// MetadataFile is the file that makes a folder a dataset.
const MetadataFile = "_mixdown.json"

// Names in the folder that are no tables. Readers of Parquet pass over names
// that begin with an underscore.
const (
	markerFolder     = "_ranks"
	taskFolder       = "_tasks"
	incompleteFolder = "_incomplete"
	rankPrefix       = "rank="
	partName         = "part-0.parquet"
)

// The tables, as their folders are called.
const (
	eventsTable      = "events"
	operationsTable  = "operations"
	ranksTable       = "ranks"
	groupsTable      = "groups"
	stepsTable       = "steps"
	waitsTable       = "waits"
	eventWaitsTable  = "event_waits"
	threadsTable     = "threads"
	diagnosticsTable = "diagnostics"
)

// Tables lists the tables of a dataset.
func Tables() []string {
	return []string{eventsTable, operationsTable, ranksTable, groupsTable, stepsTable, waitsTable, eventWaitsTable, threadsTable, diagnosticsTable}
}

var (
	// ErrNotDataset: a folder has no _mixdown.json, or one that says nothing.
	ErrNotDataset = errors.New("not a dataset of mixdown")
	// ErrVersion: the dataset was written by another version of this package.
	ErrVersion = errors.New("dataset of another version")
	// ErrCorrupt: a file of the dataset is damaged or missing.
	ErrCorrupt = errors.New("damaged dataset")
	// ErrEmpty: no rank of the dataset is whole.
	ErrEmpty = errors.New("dataset without ranks")
	// ErrForeign: a folder that is to become a dataset holds something else.
	ErrForeign = errors.New("folder holds something else")
)

// Is tells whether a dataset is at a place.
func Is(at Place) bool {
	if f, ok := at.(Folder); ok {
		info, err := os.Stat(f.name(MetadataFile))
		return err == nil && info.Mode().IsRegular()
	}
	_, err := at.read(MetadataFile, maxJSON)
	return err == nil
}

func rankName(rank int) string { return rankPrefix + strconv.Itoa(rank) }

// parseRank reads the name of a marker or partition.
func parseRank(name string) (int, bool) {
	digits, ok := strings.CutPrefix(name, rankPrefix)
	if !ok {
		return 0, false
	}
	rank, err := strconv.ParseInt(digits, 10, 32)
	if err != nil || rank < 0 || rankName(int(rank)) != name {
		return 0, false
	}
	return int(rank), true
}

// tablePath is the file that holds a rank's part of a table.
func tablePath(table string, rank int) string {
	return path.Join(table, rankName(rank), partName)
}

func markerPath(rank int) string { return path.Join(markerFolder, rankName(rank)) }

func corrupt(file, format string, args ...any) error {
	return fmt.Errorf("%w: %s: %s: run mixdown ingest --force to write it again", ErrCorrupt, file, fmt.Sprintf(format, args...))
}
