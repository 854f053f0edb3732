// The interface of a class that writes a study's results in a further format, beside the files of dsat.
//
// Threading: as host::Observer while the study runs; finish() and place() on the main thread, after it has ended.
#ifndef DSAT_CLI_TERMINAL_RESULT_WRITER_H_
#define DSAT_CLI_TERMINAL_RESULT_WRITER_H_

#include <string>

#include "dsat/host/study.h"

namespace dsat::cli {

class ResultWriter : public host::Observer {
 public:
  virtual void finish() = 0;
  // The line of the report that says where the results lie.
  virtual std::string place() const = 0;
};

}  // namespace dsat::cli

#endif  // DSAT_CLI_TERMINAL_RESULT_WRITER_H_
