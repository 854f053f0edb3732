// The reason for the end of this process, from where nothing else can report it: a signal's handler.
//
// Threading: set before other threads run; end_with() from a handler. Ownership: the descriptor is borrowed. Errors:
// none; a reader that is gone needs no reason.
#ifndef DSAT_TRAINER_WATCH_LAST_WORDS_H_
#define DSAT_TRAINER_WATCH_LAST_WORDS_H_

#include <cstddef>
#include <string>

namespace dsat::trainer {

// Where the reason goes, and what stands before it on its line. Before the first call: stderr.
void set_last_words(int fd, const std::string& before);

// Writes the line and ends the process with status 1; async-signal-safe.
[[noreturn]] void end_with(const char* text, size_t size);

}  // namespace dsat::trainer

#endif  // DSAT_TRAINER_WATCH_LAST_WORDS_H_
