// How a running endpoint is asked what it does, though its application computes: both sides of it.
//
// Each endpoint listens on an abstract UNIX socket named kReportSocketPrefix and its address, so whoever asks
// finds all endpoints of a network namespace in /proc/net/unix, and a crash leaves nothing behind. To connect
// is the question: no byte is read from whoever asks. The kernel tells which user he is; only the endpoint's
// own and root are answered, by one message with a memfd beside it that holds a report (base/report.h). So an
// answer of any length leaves at once, and nobody ever waits for a reader.
//
// The library's progress thread answers (os/progress_thread.h): it tries the endpoint's door and comes back
// if somebody is inside. After each question it is deaf for kReportInterval, so a flood of them costs next to
// nothing.
//
// Whoever asks trusts the listener no more: another user may have taken the name. It is asked who it is by
// the kernel's word, and its report is read with suspicion.
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

/// Names the version of the question; what is asked by another one is not found.
inline constexpr std::string_view kReportSocketPrefix = "cluster-info-1/";

class ReportServer {
 public:
  /// Adds what is known; false if that is not possible at this moment.
  using Describe = std::function<bool(Report&)>;

  /// Null if the endpoint cannot listen; `reason` says why.
  static std::unique_ptr<ReportServer> open(const SocketAddress& name, Describe describe,
                                            std::string& reason);

  /// What the progress thread does and listens to.
  os::NextWake visit();

 private:
  ReportServer(os::LocalSocket listener, Describe describe)
      : listener_(std::move(listener)), describe_(std::move(describe)) {}
  bool accept_client();
  void answer(const Report& report);

  os::LocalSocket listener_;
  Describe describe_;
  os::LocalSocket client_;  ///< not answered yet
};

/// The other side: what came in answer over a connection to such a listener. Nothing, with an empty `reason`,
/// as long as nothing has come.
std::optional<Report> receive_report(const os::LocalSocket& socket, std::string& reason);

}  // namespace cluster::provider
