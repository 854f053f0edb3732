// A command line, a word a line: split, read as values, turned into the options of a study.
#include "commands/host_options.h"
#include "fuzz/fuzz_target.h"
#include "options/study_options.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace dsat;
  const std::vector<std::string> words = fuzz::lines_of(fuzz::text_of(data, size));
  for (const bool tunes : {true, false}) {
    fuzz::may_refuse([&] {
      const cli::OptionSet set = tunes ? cli::tune_options() : cli::resume_options();
      const cli::Split parts = cli_kit::split(set, words, tunes ? cli::Grammar::command : cli::Grammar::operands);
      const cli::Values values(set, parts.options);
      if (tunes) {
        cli::study_options(values);
      } else {
        cli::resume_options(values);
      }
    });
  }
  return 0;
}
