#include "shm/hello.h"

#include <algorithm>
#include <cstring>

#include "shm/greeting.h"

namespace cluster::shm {
namespace {

constexpr std::uint64_t kMagic = 0x676e69722d6c6c63;  // "cll-ring"

SocketAddress name_in(const HelloMessage& message) {
  std::byte ip[sizeof message.ip];
  std::memcpy(ip, message.ip, sizeof ip);
  if (message.family == 4) return SocketAddress::v4(ip, message.port);
  if (message.family == 6) return SocketAddress::v6(ip, message.port, message.scope);
  return {};
}

}  // namespace

std::string socket_name(const SocketAddress& endpoint) {
  return plain_name("cluster-", kLayoutVersion, endpoint);
}

std::string doorbell_name(std::uint64_t number) { return "cluster-doorbell/" + std::to_string(number); }

HelloMessage encode(const Hello& hello) {
  HelloMessage message{};
  message.magic = kMagic;
  message.epoch = hello.epoch;
  message.proof_address = hello.proof.address;
  message.proof_value = hello.proof.value;
  message.doorbell = hello.doorbell;
  message.layout_version = kLayoutVersion;
  message.slots = hello.geometry.slots;
  message.arena_bytes = hello.geometry.arena_bytes;
  message.scope = hello.writer.scope();
  const ConstBytes ip = hello.writer.ip();
  std::memcpy(message.ip, ip.data(), std::min(ip.size(), sizeof message.ip));
  message.port = hello.writer.port();
  message.family = hello.writer.family() == SocketAddress::Family::v6 ? 6 : 4;
  return message;
}

std::optional<Hello> decode(const HelloMessage& message) {
  if (message.magic != kMagic || message.layout_version != kLayoutVersion) return std::nullopt;
  Hello hello;
  hello.writer = name_in(message);
  if (hello.writer.empty() || hello.writer.wildcard() || hello.writer.port() == 0) return std::nullopt;
  hello.epoch = message.epoch;
  hello.geometry = {message.slots, message.arena_bytes};
  hello.proof = {message.proof_address, message.proof_value};
  hello.doorbell = message.doorbell;
  if (!hello.geometry.valid()) return std::nullopt;
  return hello;
}

}  // namespace cluster::shm
