// The loop IR: expressions, statements, buffers and kernels. Nodes are immutable and shared; each
// lists its fields once (`fields`), and everything generic over nodes is written over that list.
// The same expressions are the dimensions of tensor types and the bodies of operators.
#pragma once

#include "ir/loops/exprs.h"
#include "ir/loops/handles.h"
#include "ir/loops/make.h"
#include "ir/loops/stmts.h"
