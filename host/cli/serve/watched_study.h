// A run directory that the server shows; it is read again when its journal changes.
//
// Threading: refresh() on one thread; latest() on any. Errors: if the study cannot be read, the snapshot has the error,
// and the next refresh() tries again.
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

// A text to send, plain and compressed, with a tag that changes with the text.
struct Document {
  std::string text, compressed, tag;
};
Document document_of(std::string text);

struct StudySnapshot {
  std::optional<host::StudyFacts> facts;  // nullopt: `error` says why
  std::string error;                      // one line; empty: no error
  Document page;                          // the document of the study; empty after an error
  Json listed;                            // the study's entry in the list of studies
};

class WatchedStudy {
 public:
  WatchedStudy(size_t id, std::filesystem::path dir) : id_(id), dir_(std::move(dir)) {}

  // Reads the study if it has changed. Reading takes at most a fifth of the time. Returns true if latest() has changed.
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
