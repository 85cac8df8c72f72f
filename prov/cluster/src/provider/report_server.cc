#include "provider/report_server.h"

#include <cstring>

#include "base/end_of_memory.h"
#include "os/shared_memory.h"

namespace cluster::provider {
namespace {

constexpr Duration kReportInterval = 10ms;
constexpr Duration kEngineBusy = 200us;
/// One call refuses at most this many clients of other users. These refusals take about 0.5 ms. With a
/// smaller number, these clients could fill the kernel's queue. With a larger number, they could keep the
/// progress thread from its other work.
constexpr int kForeignPerCall = 256;
constexpr Duration kForeignPause = 1ms;

/// The message that carries the memfd. Both processes run on the same host, so the message is in host byte
/// order.
struct ReportMessage {
  std::uint64_t magic;
  std::uint64_t bytes;
};
constexpr std::uint64_t kMagic = 0x6f666e692d6c6c63;  // "cll-info"

}  // namespace

std::unique_ptr<ReportServer> ReportServer::open(const SocketAddress& name, Describe describe,
                                                 std::string& reason) {
  std::string text = std::string(kReportSocketPrefix) + name.text();
  // Several interfaces may have the same link-local address, so the socket's name contains the interface's
  // number.
  if (name.scope() != 0) text += "%" + std::to_string(name.scope());
  os::LocalSocket listener = os::LocalSocket::listen(text, reason);
  if (!listener) return nullptr;
  return std::unique_ptr<ReportServer>(new ReportServer(std::move(listener), std::move(describe)));
}

/// Accepts the first client that may get an answer and sets `client_`. Returns zero if there is such a
/// client, or if no client waits at all. Otherwise returns how long to wait before the next attempt.
Duration ReportServer::accept_client() {
  for (int i = 0; i < kForeignPerCall; ++i) {
    std::string reason;
    os::LocalSocket socket = listener_.accept(reason);
    if (!socket) return reason.empty() ? Duration::zero() : kReportInterval;
    if (!socket.same_user() && socket.peer_user() != 0u) continue;
    client_ = std::move(socket);
    return Duration::zero();
  }
  return kForeignPause;
}

os::NextWake ReportServer::serve() {
  if (!client_) {
    const Duration pause = accept_client();
    if (pause != Duration::zero()) return {pause};
    if (!client_) return {os::NextWake::kUntilReadable, listener_.descriptor()};
  }
  bool described = true;
  // If memory runs out, the client gets no answer, and the application is not disturbed.
  enough_memory_for([&] {
    Report report;
    if (client_.hung_up()) return;
    described = describe_(report);
    if (described) answer(report);
  });
  if (!described) return {kEngineBusy};
  client_ = {};
  return {kReportInterval};
}

/// Sends the report to the client. If that fails, the client sees only that the connection is closed.
void ReportServer::answer(const Report& report) {
  const std::string text = write_report(report);
  if (text.empty() || text.size() > kReportBytesMax) return;
  std::string reason;
  os::Descriptor file;
  const os::SharedMemory memory = os::SharedMemory::create(text.size(), file, reason);
  if (!memory) return;
  std::memcpy(memory.bytes().data(), text.data(), text.size());
  const ReportMessage message{kMagic, text.size()};
  client_.send(as_bytes(&message, sizeof message), file, reason);
}

std::optional<Report> receive_report(os::LocalSocket& socket, std::string& reason, std::size_t* bytes_left) {
  reason.clear();
  ReportMessage message{};
  os::Descriptor file;
  switch (socket.receive(as_bytes(&message, sizeof message), &file)) {
    case os::LocalSocket::Receipt::nothing: return std::nullopt;
    case os::LocalSocket::Receipt::end:
      reason = "the endpoint answers only its own user and root";
      return std::nullopt;
    case os::LocalSocket::Receipt::misfit: reason = "its answer is malformed"; return std::nullopt;
    case os::LocalSocket::Receipt::message: break;
  }
  if (message.magic != kMagic || message.bytes == 0 || message.bytes > kReportBytesMax) {
    reason = "its answer is malformed";
    return std::nullopt;
  }
  if (bytes_left != nullptr) {
    if (message.bytes > *bytes_left) {
      reason = "the reports of its user are too long for a report on all processes: name the process";
      return std::nullopt;
    }
    *bytes_left -= message.bytes;
  }
  const os::SharedMemory memory = os::SharedMemory::map(file, message.bytes, reason);
  if (!memory) return std::nullopt;
  // The text is copied first, because the server may still change the memory.
  const std::string text(reinterpret_cast<const char*>(memory.bytes().data()), memory.bytes().size());
  std::optional<Report> report = read_report(text);
  if (!report || report->empty()) {
    reason = "its answer is not a report";
    return std::nullopt;
  }
  return report;
}

}  // namespace cluster::provider
