// A run directory as a server shows it: read again whenever its journal has changed.
//
// Threading: refresh() on one thread; latest() on any. Errors: a study that cannot be read is a snapshot with that
// line in it, and is tried again.
#ifndef DSAT_CLI_SERVE_WATCHED_STUDY_H_
#define DSAT_CLI_SERVE_WATCHED_STUDY_H_

#include <chrono>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "dsat/host/facts.h"

namespace dsat::cli {

// A text that is sent, as it is and compressed, with the tag that changes with it.
struct Document {
  std::string text, compressed, tag;
};
Document document_of(std::string text);

struct StudySnapshot {
  std::optional<host::StudyFacts> facts;  // nullopt: `error` says why
  std::string error;                      // one line; empty: there is none
  Document page;                          // the study's own document, empty with an error
  Json listed;                            // its line in the list of studies
};

class WatchedStudy {
 public:
  WatchedStudy(size_t id, std::filesystem::path dir) : id_(id), dir_(std::move(dir)) {}

  // Looks whether anything has changed, and reads it then. Reading takes at most a fifth of the time.
  // True: latest() is another one.
  bool refresh();
  std::shared_ptr<const StudySnapshot> latest() const;
  const std::filesystem::path& dir() const { return dir_; }

 private:
  std::string signature() const;

  const size_t id_;
  const std::filesystem::path dir_;
  std::string seen_;
  std::chrono::steady_clock::time_point next_{};
  mutable std::mutex mutex_;
  std::shared_ptr<const StudySnapshot> latest_;
};

}  // namespace dsat::cli

#endif  // DSAT_CLI_SERVE_WATCHED_STUDY_H_
