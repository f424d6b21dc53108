export { Client, JobFailed, type Job, type JobRequest } from "./client.js";
export { FoliotError, Unavailable, type Address, type Json, type JsonObject } from "./connection.js";
export { Fail, Skip, Snooze, type Context, type Task } from "./attempt.js";
export { Worker, type TaskOptions, type WorkerOptions } from "./worker.js";
