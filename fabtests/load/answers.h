// The groups of questions that the probe puts to fi_getinfo, each in a file of its own. All of them
// go on after a failure.
#pragma once

#include "core.h"
#include "verdict.h"

namespace load {

/// Every version of the interface, with and without hints.
void ask_every_version(const Core& core, Verdict& verdict);
/// What must be granted, and what must come back as it was asked for.
void ask_what_is_offered(const Core& core, Verdict& verdict);
/// What must be refused.
void ask_what_is_not(const Core& core, Verdict& verdict);
/// Node, service, flags and addresses in hints.
void ask_for_addresses(const Core& core, Verdict& verdict);
/// Opens a fabric, a domain and an endpoint on loopback, and closes them.
void open_an_endpoint(const Core& core, Verdict& verdict);

}  // namespace load
