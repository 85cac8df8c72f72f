// Functions that several texts about a report share: finding records by kind, and writing numbers.
// provider/endpoint_report.h decides which facts a report has.
#pragma once

#include <cstddef>
#include <string>

#include "base/report.h"

namespace cluster::info {

/// The first record of that kind; a record without facts if there is none.
const Record& find(const Report& report, const char* kind);
/// The text with a question mark for every byte that is no printable ASCII: what a user chose, such as the name of a
/// command, may hold orders for the terminal.
std::string printable(std::string text);
/// "12.3 us": in the unit that gives one to three digits before the point.
std::string duration_text(const std::string& ns);
/// "1 message", "2 messages".
std::string counted(std::size_t count, const char* what);
/// The value of a number; 0 if the report does not have it.
double number_of(const Record& record, const char* fact);

}  // namespace cluster::info
