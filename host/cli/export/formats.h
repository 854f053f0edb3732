// A study in the formats of other programs (docs/export.md).
//
// Threading: functions of the facts; they write and send on the calling thread. Units: in the names, or as in
// docs/trial.md. Errors: dsat::Error, one line, if a file cannot be written or a request fails. The study is only read.
#ifndef DSAT_CLI_EXPORT_FORMATS_H_
#define DSAT_CLI_EXPORT_FORMATS_H_

#include <filesystem>
#include <string>

#include "dsat/host/facts.h"

namespace dsat::cli {

std::string csv_of(const host::StudyFacts& facts);         // one line for each trial, RFC 4180
std::string json_of(const host::StudyFacts& facts);        // the document of the page
std::string json_lines_of(const host::StudyFacts& facts);  // one object and line for each trial
std::string prometheus_of(const host::StudyFacts& facts);  // the text format, for node_exporter's textfile collector

// Writes a folder of event files for TensorBoard, with the HParams plugin's summaries: one session for each trial.
void write_tensorboard(const host::StudyFacts& facts, const std::filesystem::path& folder);

// Writes MLflow's file store: `folder` is the value of --backend-store-uri. A second export of a study replaces the
// first.
void write_mlflow(const host::StudyFacts& facts, const std::filesystem::path& folder);

// Sends the study to an MLflow server. Returns a line for people about the runs that were sent.
std::string send_to_mlflow(const host::StudyFacts& facts, const std::string& uri);

}  // namespace dsat::cli

#endif  // DSAT_CLI_EXPORT_FORMATS_H_
