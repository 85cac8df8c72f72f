// What several texts about a report have in common: its records by kind, and numbers in words. Which facts a report
// has is the business of provider/endpoint_report.h.
#pragma once

#include <cstddef>
#include <string>

#include "base/report.h"

namespace cluster::info {

/// The first of its kind; one without facts if there is none.
const Record& find(const Report& report, const char* kind);
/// "12.3 us": the unit in which it has one to three digits before the point.
std::string duration_text(const std::string& ns);
/// "1 message", "2 messages".
std::string counted(std::size_t count, const char* what);
/// The value of a number; 0 if the report does not have it.
double number_of(const Record& record, const char* fact);

}  // namespace cluster::info
