#include "os/keep_alive_responder.h"

#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "os/descriptor.h"
#include "os/progress_thread.h"
#include "os/system_clock.h"
#include "wire/admit.h"
#include "wire/control.h"

namespace cluster::os {
namespace {

// The progress thread reads at most 64 datagrams of an endpoint's responder per 5 ms. Further datagrams wait
// in the socket. Therefore a flood does not wake the thread for every datagram, and leaves the thread time
// for its other clients.
constexpr int kAnswersPerInterval = 64;
constexpr Duration kInterval = std::chrono::milliseconds(5);
constexpr Duration kErrorsPending = std::chrono::milliseconds(10);

/// The number of keep-alives answered in the interval that ends at `end`.
struct Answered {
  Time end{};
  int count = 0;
};

/// Receives one datagram and answers it if it is a keep-alive. Returns false if no datagram was waiting.
bool answer_one(int socket, const SocketAddress& asked, const KeepAliveAnswerer& answerer) {
  // The buffer is large, because a keep-alive that probes a path is as long as the frames on that path. The
  // buffer can be static, because only the progress thread runs this function.
  static std::array<std::byte, 64 * 1024> buffer;
  sockaddr_storage peer;
  socklen_t peer_size = sizeof peer;
  auto* const address = reinterpret_cast<sockaddr*>(&peer);
  const ssize_t got = recvfrom(socket, buffer.data(), buffer.size(), MSG_DONTWAIT, address, &peer_size);
  if (got < 0) return errno != EAGAIN;  // any other error is an ICMP error about an earlier answer
  std::array<std::byte, kKeepAliveAnswerMax> answer;
  const std::size_t size = answerer(ConstBytes(buffer).first(static_cast<std::size_t>(got)), asked, answer);
  if (size != 0) sendto(socket, answer.data(), size, MSG_DONTWAIT, address, peer_size);
  return true;  // even if sendto() fails, because the peer asks again
}

bool has_errors(int socket) {
  pollfd errors{socket, 0, 0};
  return poll(&errors, 1, 0) > 0;
}

/// Answers waiting keep-alives. ICMP errors keep the socket readable until a thread takes the errors from the
/// socket's error queue. This function takes the errors, because the engine may not run while the application
/// computes.
NextWake answer_some(UdpPort& port, const KeepAliveAnswerer& answerer, Answered& answered) {
  const auto [socket, address] = port.keep_alives();
  const Time now = SystemClock().now();
  if (now >= answered.end) answered = {now + kInterval, 0};
  for (; answered.count < kAnswersPerInterval; ++answered.count) {
    if (answer_one(socket, address, answerer)) continue;
    if (!has_errors(socket)) return {NextWake::kUntilReadable, socket};
    port.drain_path_errors();
    return has_errors(socket) ? NextWake{kErrorsPending} : NextWake{NextWake::kUntilReadable, socket};
  }
  return {answered.end - now};
}

}  // namespace

std::size_t answer_plain_keep_alive(ConstBytes frame, const SocketAddress&, Bytes answer) {
  wire::FrameView view;
  if (wire::admit(frame, view) != wire::Refusal::none || view.kind != wire::FrameKind::keep_alive) return 0;
  const wire::ControlFrame alive = wire::ControlFrame::alive(view);
  std::memcpy(answer.data(), alive.bytes().data(), alive.bytes().size());
  return alive.bytes().size();
}

std::shared_ptr<void> start_keep_alive_responder(std::shared_ptr<UdpPort> port, Log& log,
                                                 KeepAliveAnswerer answerer) {
  int error = 0;
  const int socket = port->open_keep_alive_socket(error);
  std::shared_ptr<void> client;
  if (socket >= 0) {
    client = start_progress_client(
        [its_port = port.get(), answerer, answered = Answered{}]() mutable {
          return answer_some(*its_port, answerer, answered);
        },
        error);
  }
  if (client != nullptr) {
    UdpPort* const its_port = port.get();
    return {its_port, [port = std::move(port), client = std::move(client)](UdpPort*) mutable {
              client.reset();  // ends the client before its socket is closed
              port->close_keep_alive_socket();
            }};
  }
  port->close_keep_alive_socket();
  log.warn(
      "endpoint %s has no %s to answer keep-alives (%s); peers may declare this process dead while it "
      "computes",
      port->name().text().c_str(), socket < 0 ? "second socket" : "background thread",
      error_text(error).c_str());
  return nullptr;
}

}  // namespace cluster::os
