// dsat-host report: writes the page of a study, running or ended, as one file. write_page does so for a study that has
// just ended, and only warns if the page cannot be written.
#include "commands/report.h"

#include <fmt/format.h>

#include "commands/commands.h"
#include "commands/host_options.h"
#include "commands/output_file.h"
#include "commands/subcommand.h"
#include "dsat/base/files.h"
#include "dsat/base/units.h"
#include "dsat/error.h"
#include "export/files.h"
#include "page/page.h"
#include "terminal/exit_status.h"

namespace dsat::cli {
namespace {

constexpr const char* kUsageText =
    "Usage: dsat-host report DIR [-o FILE]\n"
    "\n"
    "Writes the page of a study, running or ended: one file that needs no network.\n"
    "\n";

}  // namespace

int report_page(const Tokens& arguments, Console& console) {
  const auto request = read_request(report_options(), arguments, kUsageText, console);
  if (!request) return kBestFound;
  const std::filesystem::path dir = only_directory(request->operands, "report");
  const auto facts = host::read_study_facts(dir);
  if (!facts.ok()) return console.error(facts.status().message()), exit_status(facts.status());
  const auto given = request->values.text("output");
  const std::filesystem::path file = given.value_or((dir / "report.html").string());
  refuse_files_of_the_study(dir, file, true);
  refuse_links_of_others(file);
  const std::string page = study_page(facts.value());
  try {
    write_output(file, page, given ? Access::by_umask : Access::owner);
  } catch (const Error& error) {
    throw Error(DSAT_INTERNAL, fmt::format("{}; give another file with -o", error.what()));
  }
  // A pipe may be our own standard output; then nothing but the page goes there.
  std::error_code error;
  const bool is_file = std::filesystem::is_regular_file(file, error);
  const auto print = [&](std::string_view text) { is_file ? console.line(text) : console.aside(text); };
  print(fmt::format("report         {}", file.string()));
  if (!has_bundle()) print("This dsat-host was built without the charts: the page has only tables.");
  return kBestFound;
}

void write_page_of(const host::StudyFacts& facts, Durability durability) {
  constexpr uint64_t kRoomOfJournal = uint64_t{4} << 20;
  const std::filesystem::path& dir = facts.record.dir;
  const std::string page = study_page(facts);
  if (const auto free = free_bytes(dir); free && *free < page.size() + kRoomOfJournal) {
    throw Error(DSAT_INTERNAL, fmt::format("{}: only {} are free, and the journal comes first", dir.string(),
                                           format_size(static_cast<double>(*free))));
  }
  write_file_atomically(dir / "report.html", page, durability, Access::owner);
}

void write_page(const std::filesystem::path& dir, Console& console) {
  try {
    const auto facts = host::read_study_facts(dir);
    if (!facts.ok()) throw Error(DSAT_INTERNAL, facts.status().message());
    write_page_of(facts.value(), Durability::synced);
    console.line(fmt::format("report         {}", (dir / "report.html").string()));
  } catch (const std::exception& error) {
    console.error(fmt::format("no report.html: {}", error.what()));
  }
}

}  // namespace dsat::cli
