#include "os/own_listener.h"

#include <cstdint>
#include <cstdio>
#include <fstream>
#include <vector>

#include "os/system_random.h"

namespace cluster::os {
namespace {

constexpr char kSeparator = '/';

std::string alternative(std::string_view name) {
  SystemRandom random;
  char end[17];
  std::snprintf(end, sizeof end, "%016llx", static_cast<unsigned long long>(random.next()));
  return std::string(name) + kSeparator + end;
}

/// Names in the kernel's table that an alternative of `name` could have; abstract ones are shown behind an @.
std::vector<std::string> alternatives_of(std::string_view name) {
  const std::string begin = "@" + std::string(name) + kSeparator;
  std::vector<std::string> found;
  std::ifstream table("/proc/net/unix");
  for (std::string line; found.size() < kAlternativesMax && std::getline(table, line);) {
    const std::size_t at = line.find(begin);
    if (at != std::string::npos) found.push_back(line.substr(at + 1));
  }
  return found;
}

}  // namespace

LocalSocket listen_as_own(std::string_view name, std::string& reason) {
  LocalSocket listener = LocalSocket::listen(name, reason);
  if (listener) return listener;
  std::string unconnected;
  const LocalSocket holder = LocalSocket::connect(name, unconnected);
  if (holder && holder.same_user()) return listener;
  return LocalSocket::listen(alternative(name), reason);
}

LocalSocket connect_to_own(std::string_view name, bool expected, std::string& reason, bool* full) {
  bool no_place = false;
  LocalSocket socket = LocalSocket::connect(name, reason, &no_place);
  if (full != nullptr) *full = expected && no_place;
  if (socket ? socket.same_user() : !expected) return socket;
  for (const std::string& other : alternatives_of(name)) {
    std::string none;
    LocalSocket connected = LocalSocket::connect(other, none, &no_place);
    if (connected && connected.same_user()) return connected;
    if (full != nullptr) *full |= no_place;
  }
  if (socket) reason = "it runs as another user";
  return {};
}

}  // namespace cluster::os
