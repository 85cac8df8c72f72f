// Transfers reports about a running endpoint to cluster-info, even while its application computes. This file
// has both the server and the client.
//
// Each endpoint listens on an abstract UNIX socket. The socket's name is kReportSocketPrefix followed by the
// endpoint's address. Therefore /proc/net/unix shows all endpoints of a network namespace. Because the socket
// is abstract, nothing has to be removed after a crash. A client requests a report when it opens a
// connection, so the server reads no bytes from the client. The server asks the kernel for the client's user.
// Only the endpoint's own user and root get an answer. The answer is one message with a memfd that contains
// the report (base/report.h). Therefore the server can send even a long answer at once, and never waits for a
// client.
//
// The progress thread runs the server (os/progress_thread.h). If another thread holds the engine lock, the
// server tries again later. After each request the server accepts no other for kReportInterval, so a flood of
// requests costs almost nothing. It refuses clients of other users without that pause, because they would
// otherwise fill the queue of connections.
//
// The client does not trust the server, because another user may listen under the endpoint's name. The client
// asks the kernel for the server's user, and checks the report.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/address.h"
#include "base/report.h"
#include "os/local_socket.h"
#include "os/progress_thread.h"

namespace cluster::provider {

/// The prefix contains the version of this exchange, so clients of another version do not find the socket.
inline constexpr std::string_view kReportSocketPrefix = "cluster-info-1/";

class ReportServer {
 public:
  /// A function that fills the report. It returns false if another thread holds the engine lock.
  using Describe = std::function<bool(Report&)>;

  /// Opens the socket. If that fails, returns null and sets `reason` to the cause.
  static std::unique_ptr<ReportServer> open(const SocketAddress& name, Describe describe,
                                            std::string& reason);

  /// Answers a client if one is waiting. The progress thread calls this function. The result tells the thread
  /// when to call it again.
  os::NextWake serve();

 private:
  ReportServer(os::LocalSocket listener, Describe describe)
      : listener_(std::move(listener)), describe_(std::move(describe)) {}
  Duration accept_client();
  void answer(const Report& report);

  os::LocalSocket listener_;
  Describe describe_;
  os::LocalSocket client_;  ///< accepted but not answered yet
};

/// The client calls this function. Returns the report that has arrived over a connection. As long as no
/// report has arrived, returns nothing and leaves `reason` empty. If the answer is invalid, returns nothing
/// and sets `reason` to the cause. If `bytes_left` is not null, refuses a report that is longer than
/// `*bytes_left`, and subtracts the length of any other report from `*bytes_left`.
std::optional<Report> receive_report(os::LocalSocket& socket, std::string& reason,
                                     std::size_t* bytes_left = nullptr);

}  // namespace cluster::provider
