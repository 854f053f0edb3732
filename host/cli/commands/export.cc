// dsat-host export: reads a study and writes it in the format of another program. The study is only read, so a failure
// here does no harm to it.

#include <filesystem>

#include "commands/commands.h"
#include "commands/host_options.h"
#include "commands/output_file.h"
#include "commands/subcommand.h"
#include "dsat/error.h"
#include "dsat/host/facts.h"
#include "export/formats.h"
#include "terminal/exit_status.h"

namespace dsat::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kUsageText =
    "Usage: dsat-host export DIR --format csv|json|jsonl|tensorboard|mlflow|prometheus [-o PATH]\n"
    "\n"
    "Writes a study, running or ended, in the format of another program. Without -o, the files of TensorBoard and\n"
    "MLflow go to DIR/tensorboard and DIR/mlruns, and every other format goes to standard output.\n"
    "\n";

void write_as_asked(const host::StudyFacts& facts, const Values& values, Console& console) {
  const std::string format = *values.text("format");
  std::optional<fs::path> target;
  if (const auto given = values.text("output")) target = *given;
  if (values.given("mlflow-uri")) {
    if (format != "mlflow" || target) throw Error("--mlflow-uri goes with --format mlflow, and without -o");
    return console.line(send_to_mlflow(facts, *values.text("mlflow-uri")));
  }
  if (target) refuse_files_of_the_study(facts.record.dir, *target);
  if (format == "tensorboard" || format == "mlflow") {
    const fs::path folder = target.value_or(facts.record.dir / (format == "mlflow" ? "mlruns" : "tensorboard"));
    format == "mlflow" ? write_mlflow(facts, folder) : write_tensorboard(facts, folder);
    return console.line(folder.string());
  }
  const std::string text = format == "csv"     ? csv_of(facts)
                           : format == "json"  ? json_of(facts)
                           : format == "jsonl" ? json_lines_of(facts)
                                               : prometheus_of(facts);
  target ? write_output(*target, text) : console.data(text);
}

}  // namespace

int export_study(const Tokens& arguments, Console& console) {
  const auto request = read_request(export_options(), arguments, kUsageText, console);
  if (!request) return kBestFound;
  const fs::path dir = only_directory(request->operands, "export");
  if (!request->values.given("format")) {
    throw Error("export needs --format: csv, json, jsonl, tensorboard, mlflow or prometheus");
  }
  const auto facts = host::read_study_facts(dir);
  if (!facts.ok()) return console.error(facts.status().message()), exit_status(facts.status());
  write_as_asked(facts.value(), request->values, console);
  return kBestFound;
}

}  // namespace dsat::cli
