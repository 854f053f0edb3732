// The page of a study: one HTML file that needs no network, bundled from web/ and filled with the study's data.
//
// A program that is built without the bundle (-DDSAT_WEB=OFF, or no npm) writes a plain page of tables that says so.
// Threading: pure functions. Errors: dsat::Error if there is too little memory for the compression.
#ifndef DSAT_CLI_PAGE_PAGE_H_
#define DSAT_CLI_PAGE_PAGE_H_

#include <string>
#include <string_view>
#include <vector>

#include "dsat/host/facts.h"

namespace dsat::cli {

// False: this program writes only plain pages.
bool has_bundle();

// The study's document with the program's version, as JSON text (docs/report.md).
std::string page_document(const host::StudyFacts& facts);

// The page as one file with its data.
std::string study_page(const host::StudyFacts& facts);

// The page that gets its data from the server. Without the bundle, plain tables that the browser reloads.
std::string served_page(const std::vector<const host::StudyFacts*>& studies);

// The compression of the page's data and of the server's answers.
std::string gzip(std::string_view bytes);

// Any text, escaped for HTML; control characters become blanks.
std::string html_escaped(std::string_view text);

}  // namespace dsat::cli

#endif  // DSAT_CLI_PAGE_PAGE_H_
