// The view of a search that another process runs, from its journal.
//
// Threading: a pure function. Errors: none.
#ifndef DSAT_CLI_TERMINAL_RECORDED_VIEW_H_
#define DSAT_CLI_TERMINAL_RECORDED_VIEW_H_

#include "dsat/host/facts.h"
#include "terminal/search_view.h"

namespace dsat::cli {

SearchView view_of(const host::StudyFacts& facts, SearchView::Clock::time_point now);

}  // namespace dsat::cli

#endif  // DSAT_CLI_TERMINAL_RECORDED_VIEW_H_
