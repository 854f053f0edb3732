// The events of a study as lines on a descriptor, for a program that watches the study.
//
// Threading: as an Observer's. A thread of its own writes, so a reader that is slow does not hold the study up.
//   Ownership: the descriptor stays the caller's; trials do not inherit it. Errors: the constructor throws if the
//   descriptor cannot be written to. Once the reader is gone the study is asked to stop, as if its terminal were
//   closed.
#ifndef DSAT_CLI_EVENTS_EVENT_STREAM_H_
#define DSAT_CLI_EVENTS_EVENT_STREAM_H_

#include <condition_variable>
#include <deque>
#include <mutex>
#include <string>
#include <thread>

#include "dsat/host/study.h"
#include "events/event_lines.h"

namespace dsat::cli {

class EventStream final : public EventLines {
 public:
  EventStream(int fd, host::Study& study);
  // Waits until all lines are written, or the reader is gone.
  ~EventStream() override;
  EventStream(const EventStream&) = delete;
  EventStream& operator=(const EventStream&) = delete;

 private:
  void add(std::string line);
  void write_all();

  const int fd_;
  host::Study& study_;
  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::deque<std::string> lines_;
  bool done_ = false;
  std::thread writing_;
};

// Throws if nothing can be written to `fd`. From then on no child inherits it.
void check_event_descriptor(int64_t fd);

}  // namespace dsat::cli

#endif  // DSAT_CLI_EVENTS_EVENT_STREAM_H_
