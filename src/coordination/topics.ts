/** What wakes are about: the names that waiters register under. */

export const userTopic = (userId: number): string => `user:${userId}`;
export const importTopic = (importId: string): string => `import:${importId}`;
