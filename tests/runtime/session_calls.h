// Opening and running small executables in tests of the session.
#pragma once

#include <gtest/gtest.h>

#include "runtime/session.h"

namespace tilewright::testing {

// A session of an executable that must be valid.
inline std::unique_ptr<Session> open(Executable e, SessionOptions options = {.threads = 2}) {
  auto session = Session::create(std::make_shared<Executable>(std::move(e)), std::move(options));
  EXPECT_TRUE(session.ok()) << session.error().to_string();
  return std::move(*session);
}

// The error of a run, which must be of this kind; "no error".
inline std::string error_of(Session& session, std::vector<Tensor> inputs,
                            ErrorKind kind = ErrorKind::kInvalid) {
  std::vector<Tensor> outputs;
  const Status s = session.run(inputs, outputs);
  if (s.ok()) return "no error";
  EXPECT_EQ(s.error().kind, kind);
  return s.error().to_string();
}

// Why no session is made of an executable.
inline std::string refusal(Executable e) {
  auto session = Session::create(std::make_shared<Executable>(std::move(e)));
  return session.ok() ? "no error" : session.error().to_string();
}

}  // namespace tilewright::testing
