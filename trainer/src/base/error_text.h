// What an exception of any library says to a person.
//
// JSON and file system exceptions begin with words that mean something to their library only; they are left out here.
// Threading: a pure function. Errors: none.
#ifndef DSAT_TRAINER_BASE_ERROR_TEXT_H_
#define DSAT_TRAINER_BASE_ERROR_TEXT_H_

#include <exception>
#include <string>

namespace dsat::trainer {

std::string error_text(const std::exception& error);

// The line of LibTorch's text that gives the reason.
std::string libtorch_reason(const std::string& text);

}  // namespace dsat::trainer

#endif  // DSAT_TRAINER_BASE_ERROR_TEXT_H_
