// A command line, a word a line: split, read as values, turned into the options of a study.
#include "commands/host_options.h"
#include "fuzz/fuzz_target.h"
#include "options/study_options.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace dsat;
  const std::vector<std::string> words = fuzz::lines_of(fuzz::text_of(data, size));
  static const cli::OptionSet tune = cli::tune_options(), resume = cli::resume_options();
  fuzz::may_refuse([&] {
    const cli::Split parts = cli_kit::split(tune, words, cli::Grammar::command);
    cli::study_options(cli::Values(tune, parts.options));
  });
  fuzz::may_refuse([&] {
    const cli::Split parts = cli_kit::split(resume, words, cli::Grammar::operands);
    cli::resume_options(cli::Values(resume, parts.options));
  });
  return 0;
}
