// The space that a study would search, found without running the study: `dsat-host space`.
#ifndef DSAT_HOST_SPACE_H_
#define DSAT_HOST_SPACE_H_

#include <string>
#include <vector>

#include "dsat/error.h"
#include "dsat/host/status.h"
#include "dsat/host/study.h"

namespace dsat::host {

struct AxisFacts {
  std::string key;                        // dotted
  std::vector<Json> values;               // of the first of its stages, all different
  std::vector<int> stages;                // at which it is searched, ascending
  std::string origin;                     // "default", or what names it
  std::string effect;                     // what it does, in a line; empty: not known to dsat
  std::string readers;                    // which versions of DeepSpeed read it; empty: not known
  std::vector<std::string> conditions{};  // "only if KEY == VALUE", "divides KEY"
};

struct SpaceFacts {
  std::vector<AxisFacts> axes;  // the stage first, then the micro batch
  std::vector<std::string> notices;
};

// Reads the same files as Study::create, and runs and writes nothing. Threading: a plain function.
Result<SpaceFacts> space_of(const StudyOptions& options);

Json to_json(const SpaceFacts& facts);

}  // namespace dsat::host

#endif  // DSAT_HOST_SPACE_H_
