#include "why_text.h"

#include <algorithm>
#include <map>
#include <string_view>

#include "report_words.h"

namespace cluster::info {
namespace {

constexpr double kLongNs = 1e9;      // of a peer that is silent
constexpr double kLongAwayNs = 2e9;  // of an application that makes no call
constexpr std::size_t kLostNamed = 4;

bool stands(const Record& operation) {
  return operation["operation"] == "buffer" && operation["peer"] == "any";
}

const Record& peer_record(const Report& report, const std::string& name) {
  const auto found = std::find_if(report.begin(), report.end(), [&](const Record& record) {
    return record.kind() == "peer" && record["peer"] == name;
  });
  return found != report.end() ? *found : find(report, "");
}

/// The peer, with its process if that is in the same network.
std::string name_of(const std::string& peer, const EndpointReport& answer,
                    const std::vector<Neighbour>& neighbours) {
  for (const Neighbour& each : neighbours) {
    if (each.endpoint != peer || each.network != answer.network || each.process == 0) continue;
    return peer + " (process " + std::to_string(each.process) + " " + each.command + ")";
  }
  return peer;
}

/// Messages that match no receive: from one peer, or from all.
std::string messages_text(const Report& report, std::size_t count, const std::string& peer) {
  if (count == 0) return "";
  std::string text = counted(count, "message") + (count == 1 ? " waits" : " wait") +
                     " here for a receive that matches " + (count == 1 ? "it" : "them");
  for (const Record& message : report) {
    if (message.kind() != "message" || (!peer.empty() && message["peer"] != peer)) continue;
    text += count == 1 ? " (" : " (the first: ";
    if (!message["tag"].empty()) text += "tag " + message["tag"] + ", ";
    return text + message["bytes"] + " bytes, from " + message["peer"] + ")";
  }
  return text;
}

std::string silence_text(const Record& peer) {
  const bool called = !peer["sent_frames"].empty() && peer["path"] != "none";
  const bool never = called && peer["silent_ns"].empty();
  std::string text;
  if (never) text = "; it has never been reached";
  if (number_of(peer, "silent_ns") >= kLongNs)
    text = "; it has been silent for " + duration_text(peer["silent_ns"]);
  if (!text.empty() && peer["kernel_vouches"] == "yes")
    text += "; its kernel reports that its process exists: the process is stopped, or a firewall blocks UDP";
  return text;
}

/// Other known facts about the peer that may be the reason.
std::string hints_text(const Report& report, const Record& peer) {
  std::string hints;
  if (!peer["lost"].empty()) {
    hints += "; it " + loss_text(peer);
  } else if (peer["path"] == "none") {
    hints += "; it is not reached: " + peer["why"];
  }
  hints += silence_text(peer);
  if (peer["unread"] == "yes") hints += "; it has not read the messages that wait in shared memory";
  const auto unexpected = static_cast<std::size_t>(number_of(peer, "unexpected_messages"));
  if (unexpected != 0) hints += "; " + messages_text(report, unexpected, peer["peer"]);
  return hints;
}

/// Lost peers, from which no receive gets a message again.
std::string lost_text(const EndpointReport& answer, const std::vector<Neighbour>& neighbours) {
  std::string text;
  std::size_t lost = 0;
  for (const Record& peer : answer.report) {
    if (peer.kind() != "peer" || peer["lost"].empty()) continue;
    if (++lost > kLostNamed) continue;
    text += "; " + name_of(peer["peer"], answer, neighbours) + " " + loss_text(peer) +
            " and can no longer send the message";
  }
  return lost > kLostNamed ? text + "; so were " + std::to_string(lost - kLostNamed) + " more" : text;
}

std::string away_text(const Record& endpoint) {
  if (number_of(endpoint, "no_call_ns") < kLongAwayNs) return "";
  return "; the application has made no libfabric call for " + duration_text(endpoint["no_call_ns"]) +
         ": it computes, or waits elsewhere";
}

std::string operation_text(const Record& operation, const std::string& peer) {
  std::string text = operation["age_ns"].empty()
                         ? " waits for "
                         : " has waited " + duration_text(operation["age_ns"]) + " for ";
  text += peer + " " + operation["waits_for"];
  text += " (" + operation["operation"] + " of " + operation["bytes"] + " bytes";
  if (operation["done_bytes"] != "0") text += ", " + operation["done_bytes"] + " done";
  if (!operation["tag"].empty()) text += ", tag " + operation["tag"];
  return text + ")";
}

bool waits_for_a_peer(const EndpointReport& answer) {
  if (!answer.trouble.empty()) return true;  // nothing is known about it
  const std::vector<const Record*> operations = operations_of(answer.report);
  return std::any_of(operations.begin(), operations.end(), [](const Record* each) { return !stands(*each); });
}

std::string launcher_text(const Launcher& launcher) {
  const std::string& name = launcher.command;
  std::string text = "No rank of " + name + " (process " + std::to_string(launcher.process) +
                     ") waits for a peer: if the job hangs, its ranks are computing, or wait for " + name;
  for (const SilentConnection& each : launcher.silent) {
    text += "; nothing answers what " + name + " sends over TCP from " + each.from + " to " + each.to + " (" +
            std::to_string(each.retransmissions) + " retransmissions): is this rail cut?";
  }
  return text + (launcher.silent.empty() ? ".\n" : "\n");
}

}  // namespace

std::vector<const Record*> operations_of(const Report& report) {
  std::vector<const Record*> operations;
  for (const Record& record : report) {
    if (record.kind() == "operation") operations.push_back(&record);
  }
  std::stable_sort(operations.begin(), operations.end(), [](const Record* a, const Record* b) {
    return number_of(*a, "age_ns") > number_of(*b, "age_ns");
  });
  return operations;
}

std::string loss_text(const Record& peer) {
  return "was lost " + duration_text(peer["lost_ns"]) + " ago (" + peer["lost"] + ")";
}

std::string why_text(const EndpointReport& answer, const std::vector<Neighbour>& neighbours) {
  const Record& endpoint = find(answer.report, "endpoint");
  std::vector<const Record*> operations = operations_of(answer.report);
  const std::size_t standing = std::erase_if(operations, [](const Record* each) { return stands(*each); });
  const std::string messages =
      messages_text(answer.report, static_cast<std::size_t>(number_of(endpoint, "unexpected_messages")), "");
  std::string text = endpoint["endpoint"];
  if (operations.empty()) {
    text += " waits for no peer: nothing is in progress";
    if (standing != 0) text += " (" + counted(standing, "buffer") + " for any message)";
    if (!messages.empty()) text += ", and " + messages;
    return text + away_text(endpoint) + ".\n";
  }
  const Record& oldest = *operations.front();
  const bool any = oldest["peer"] == "any";
  text += operation_text(oldest, any ? "any peer" : name_of(oldest["peer"], answer, neighbours));
  if (any && !messages.empty()) text += "; " + messages;
  text += any ? lost_text(answer, neighbours)
              : hints_text(answer.report, peer_record(answer.report, oldest["peer"]));
  const std::size_t more = operations.size() - 1;
  if (more != 0)
    text += "; " + counted(more, "more operation") + (more == 1 ? " is in progress" : " are in progress");
  return text + away_text(endpoint) + ".\n";
}

std::string launchers_text(const std::vector<EndpointReport>& answers) {
  std::map<int, const Launcher*> quiet;  // by process; null: one of its ranks waits
  for (const EndpointReport& answer : answers) {
    if (answer.launcher.process == 0) continue;
    const Launcher*& launcher = quiet.emplace(answer.launcher.process, &answer.launcher).first->second;
    if (waits_for_a_peer(answer)) launcher = nullptr;
  }
  std::string text;
  for (const auto& [process, launcher] : quiet) {
    if (launcher != nullptr) text += launcher_text(*launcher);
  }
  return text;
}

}  // namespace cluster::info
