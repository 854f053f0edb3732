// A study in the shapes that other programs read (docs/export.md).
//
// Threading: pure functions of the facts; those that write do so on the calling thread. Units: in the names, or those
// of docs/trial.md. Errors: dsat::Error, one line, where something cannot be written or sent; the study is only read.
#ifndef DSAT_CLI_EXPORT_FORMATS_H_
#define DSAT_CLI_EXPORT_FORMATS_H_

#include <filesystem>
#include <string>

#include "dsat/host/facts.h"

namespace dsat::cli {

std::string csv_of(const host::StudyFacts& facts);         // a line a trial, RFC 4180
std::string json_of(const host::StudyFacts& facts);        // one document: the page's
std::string json_lines_of(const host::StudyFacts& facts);  // an object a line, one a trial
std::string prometheus_of(const host::StudyFacts& facts);  // the text format, for node_exporter's textfile collector

// A folder of event files for TensorBoard, with the HParams plugin's summaries: one session a trial.
void write_tensorboard(const host::StudyFacts& facts, const std::filesystem::path& folder);

// MLflow's file store: `folder` is what --backend-store-uri names. A second export of a study replaces the first.
void write_mlflow(const host::StudyFacts& facts, const std::filesystem::path& folder);

// The same through MLflow's REST interface. Returns what was sent, for people.
std::string send_to_mlflow(const host::StudyFacts& facts, const std::string& uri);

}  // namespace dsat::cli

#endif  // DSAT_CLI_EXPORT_FORMATS_H_
