// Reports about a running endpoint for cluster-info, even while its application computes: the server side and
// the client side.
//
// Each endpoint listens on an abstract UNIX socket whose name is kReportSocketPrefix and its address. So
// /proc/net/unix shows all endpoints of a network namespace, and a crash leaves nothing behind. A connection
// is the request: the server reads no byte from the client. The kernel tells the server the client's user.
// Only the endpoint's own user and root get an answer: one message with a memfd that holds the report
// (base/report.h). So the server sends an answer of any length at once and never waits for a client.
//
// The progress thread serves clients (os/progress_thread.h). It tries the engine lock; if the lock is held,
// it comes back later. After each request it accepts no other for kReportInterval, so a flood of requests
// costs almost nothing. It turns clients of other users away without that pause, because they would otherwise
// fill the queue.
//
// The client does not trust the server either, because another user may have taken the name. It asks the
// kernel for the server's user, and checks the report.
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

/// Contains the version of this exchange, so clients of another version find no servers.
inline constexpr std::string_view kReportSocketPrefix = "cluster-info-1/";

class ReportServer {
 public:
  /// Fills the report. Returns false if the engine lock is held at the moment.
  using Describe = std::function<bool(Report&)>;

  /// Returns null, with the cause in `reason`, if the endpoint cannot listen.
  static std::unique_ptr<ReportServer> open(const SocketAddress& name, Describe describe,
                                            std::string& reason);

  /// One call of the progress thread: answers a client if there is one.
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

/// The client side: returns the report that arrived over a connection. Returns nothing, with an empty
/// `reason`, as long as no report has arrived.
std::optional<Report> receive_report(os::LocalSocket& socket, std::string& reason);

}  // namespace cluster::provider
