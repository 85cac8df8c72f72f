#include "agent.h"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>

#include "descriptor.h"

namespace cluster::ip {
namespace {

/// The agent's local socket, an abstract name; its requests and answers are JSON behind a length of four bytes
/// (util/clusterd_lib/query.py).
constexpr char kSocket[] = "\0clusterd-1";
constexpr std::size_t kAnswerBytesMax = 8 << 20;
constexpr timeval kPatience = {3, 0};

void check(bool done) {
  if (!done)
    throw std::runtime_error(std::string("the agent of this node does not answer: ") + std::strerror(errno));
}

Descriptor connect_agent() {
  Descriptor connected(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  check(static_cast<bool>(connected));
  ::setsockopt(connected.number(), SOL_SOCKET, SO_RCVTIMEO, &kPatience, sizeof kPatience);
  sockaddr_un name = {};
  name.sun_family = AF_UNIX;
  std::memcpy(name.sun_path, kSocket, sizeof kSocket - 1);
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + sizeof kSocket - 1);
  if (::connect(connected.number(), reinterpret_cast<const sockaddr*>(&name), length) != 0)
    throw std::runtime_error(
        "no agent runs on this node (run \"systemctl start clusterd\", or name the nodes with --nodes)");
  ucred listener = {};
  socklen_t size = sizeof listener;
  check(::getsockopt(connected.number(), SOL_SOCKET, SO_PEERCRED, &listener, &size) == 0);
  if (listener.uid != 0 && listener.uid != ::geteuid())
    throw std::runtime_error(
        "a process of a user other than root poses as the agent of this node: \"ss -xlp 'src "
        "@clusterd-1'\" shows it");
  return connected;
}

void receive(int socket, void* data, std::size_t length) {
  auto* next = static_cast<char*>(data);
  while (length > 0) {
    const ssize_t got = ::recv(socket, next, length, 0);
    if (got == 0) errno = ECONNRESET;
    check(got > 0);
    next += got;
    length -= static_cast<std::size_t>(got);
  }
}

nlohmann::json ask(const char* operation) {
  const std::string request = nlohmann::json{{"operation", operation}}.dump();
  const std::uint32_t length = htonl(static_cast<std::uint32_t>(request.size()));
  const std::string frame = std::string(reinterpret_cast<const char*>(&length), sizeof length) + request;
  const Descriptor agent = connect_agent();
  check(::send(agent.number(), frame.data(), frame.size(), MSG_NOSIGNAL) ==
        static_cast<ssize_t>(frame.size()));
  std::uint32_t answer_length = 0;
  receive(agent.number(), &answer_length, sizeof answer_length);
  answer_length = ntohl(answer_length);
  if (answer_length > kAnswerBytesMax)
    throw std::runtime_error("the answer of the agent of this node is too long");
  std::string answer(answer_length, 0);
  receive(agent.number(), answer.data(), answer.size());
  const nlohmann::json parsed = nlohmann::json::parse(answer);
  if (parsed.contains("error"))
    throw std::runtime_error("the agent of this node refuses: " + parsed.at("error").get<std::string>());
  return parsed.at("result");
}

}  // namespace

std::vector<Node> nodes_of_agent() {
  try {
    std::vector<Node> nodes;
    for (const nlohmann::json& entry : ask("addresses")) {
      const auto addresses = entry.at("addresses").get<std::vector<std::string>>();
      if (!addresses.empty()) nodes.push_back({entry.at("name").get<std::string>(), addresses.front()});
    }
    return nodes;
  } catch (const nlohmann::json::exception& error) {
    throw std::runtime_error(
        std::string("the answer of the agent is malformed (does clusterd have another version?): ") +
        error.what());
  }
}

}  // namespace cluster::ip
